#include "codegen/schedules/picked_rows.h"

#include <algorithm>
#include <numeric>

#include "analysis/kernel_forms.h"
#include "analysis/loads.h"
#include "analysis/target.h"
#include "codegen/emit_expr.h"
#include "codegen/schedules/access_samples.h"
#include "codegen/schedules/loads_of_lanes.h"
#include "codegen/schedules/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr std::int64_t kMostPickedBytes =
    40 * 1024;  // of shared memory: less than every device gives without being asked

class PickedRowsPlanner {
 public:
  PickedRowsPlanner(const Kernel& kernel, const Graph& graph, const Target& target)
      : kernel_(kernel),
        pool_(kernel.pool),
        graph_(graph),
        target_(target),
        depends_(dependences(kernel.pool)),
        samples_(kernel, graph) {}

  std::optional<PickedRows> run() {
    const std::vector<std::uint32_t>& axes = kernel_.outputs[0].axes;
    if (axes.size() < 2 || writes_half_bytes(kernel_)) return std::nullopt;
    last_ = axes.back();
    const auto columns = pool_.extent(last_).as_constant();
    if (!columns || *columns < 1 || *columns > kMostPickedBytes) return std::nullopt;
    plan_.columns = static_cast<int>(*columns);
    ids_ = reachable(pool_, roots_of(kernel_));
    for (const ExprId id : ids_)
      if (pool_[id].op == ExprOp::kLoad) see(id);
    if (plan_.sources.empty()) return std::nullopt;
    find_picks();
    if (!choose_rows()) return std::nullopt;
    choose_width();
    lay_out();
    plan_.sectors = sectors();
    return std::move(plan_);
  }

 private:
  bool of_columns(ExprId id) const { return std::ranges::binary_search(depends_[id], last_); }
  bool of_columns(const IndexExpr& e) const {
    return std::ranges::any_of(variables_of(e), [&](Variable v) {
      return v.kind == Variable::Kind::kValue ? of_columns(v.id) : v == Variable{Variable::Kind::kAxis, last_};
    });
  }
  bool same_for_all_rows(ExprId id) const { return depends_[id] == std::vector<std::uint32_t>{last_}; }

  void see(ExprId load) {
    const ExprNode& n = pool_[load];
    if (bits(n.dtype) < 8 || n.args[0] != kNoExpr || samples_.is_of_table(load)) return;
    const IndexExpr position = position_of(graph_, pool_, load);
    std::vector<IndexTerm> of_points;
    for (const IndexTerm& term : position.terms())
      if (of_columns(from_terms({term}, 0))) of_points.push_back(term);
    const IndexExpr element = from_terms(std::move(of_points), 0);
    const auto v = element.as_variable();
    if (!v || v->kind != Variable::Kind::kValue) return;
    const auto length = pool_.bounds().value_max.at(v->id).as_constant();
    const int bytes = bits(n.dtype) / 8;
    if (!length || *length * bytes > kMostPickedBytes) return;
    const IndexExpr first = simplify(position - element, pool_.bounds());
    const bool aligned = proves_multiple_of(first, kVectorBytes / bytes, pool_.bounds());
    const std::int64_t before = aligned ? 0 : kVectorBytes - bytes;  // bytes that may lie before them in their vector
    plan_.sources.push_back({.load = load,
                             .value = v->id,
                             .first = first,
                             .length = static_cast<int>(*length),
                             .vectors = static_cast<int>((*length * bytes + before + kVectorBytes - 1) / kVectorBytes),
                             .aligned = aligned});
  }

  // What is the same for all rows.
  void find_picks() {
    for (const PickedRows::Source& source : plan_.sources) looked_up_.push_back(source.value);
    looked_up_ = reachable(pool_, looked_up_);
    for (const PickedRows::Source& source : plan_.sources) {
      const bool known = std::ranges::find(plan_.picks, source.value, &PickedRows::Picks::value) != plan_.picks.end();
      if (!known && same_for_all_rows(source.value)) plan_.picks.push_back({.value = source.value});
    }
  }

  std::int64_t bytes_of_row() const {
    std::int64_t bytes = 0;
    for (const PickedRows::Source& source : plan_.sources) bytes += kVectorBytes * source.vectors + 4;
    return bytes;
  }
  std::int64_t bytes_of_picks() const { return static_cast<std::int64_t>(plan_.picks.size()) * 4 * plan_.columns; }

  // As many rows as are worth reading what they share, where every multiprocessor has a block all the same; results of
  // a block that begin at a sector, where rows are that many.
  bool choose_rows() {
    constexpr std::int64_t kPoints = 2048, kPointsThatShare = 8192;
    const std::int64_t rows = samples_.points() / plan_.columns;
    const auto most = [&](std::int64_t points) {
      const std::int64_t fit = (kMostPickedBytes - 64 - bytes_of_picks()) / bytes_of_row();
      return std::min({fit, std::max<std::int64_t>(1, points / plan_.columns),
                       std::max<std::int64_t>(1, rows / target_.multiprocessors)});
    };
    std::int64_t each = most(plan_.picks.empty() ? kPoints : kPointsThatShare);
    if (each < 2) {
      plan_.picks.clear();
      each = most(kPoints);
    }
    if (each < 1 || 2 * rows < each * target_.multiprocessors) return false;
    int narrowest = 64;
    for (const KernelOutput& output : kernel_.outputs) narrowest = std::min(narrowest, bits(output.type.dtype));
    const std::int64_t whole =
        kSectorBytes / std::gcd<std::int64_t>(kSectorBytes, std::int64_t{plan_.columns} * narrowest / 8);
    plan_.rows = static_cast<int>(each >= whole ? each / whole * whole : each);
    return true;
  }

  // Neighbours that are stored by one access; what else lies along them in memory is read by one, too. No more than
  // four: picks of neighbouring threads lie in 16 bytes each, without conflicts of banks.
  void choose_width() {
    int widest = 32;
    for (const KernelOutput& output : kernel_.outputs) widest = std::max(widest, bits(output.type.dtype));
    for (const ExprId id : ids_) {
      const bool is_source = std::ranges::find(plan_.sources, id, &PickedRows::Source::load) != plan_.sources.end();
      const bool picks = same_for_all_rows(id) && !plan_.picks.empty();
      if (pool_[id].op == ExprOp::kLoad && of_columns(id) && !is_source && !picks)
        widest = std::max(widest, bits(pool_[id].dtype));
    }
    const int width = 128 / widest;
    if (plan_.columns % width == 0) {
      const Kernel split = split_last_axis(kernel_, width);
      const bool together = std::ranges::all_of(split.outputs, [&](const KernelOutput& output) {
        const IndexExpr at = simplify(flat_index(output.type.shape, output.index), split.pool.bounds());
        return is_vector_position(at, output.axes.back(), width, output.type.dtype, split.pool.bounds());
      });
      if (together) plan_.width = width;
    }
    if (plan_.rows * plan_.columns / plan_.width < 1024) plan_.threads = 128;
  }

  void lay_out() {
    std::int64_t at = 0;
    for (PickedRows::Source& source : plan_.sources) {
      source.start = at;
      at += std::int64_t{kVectorBytes} * source.vectors * plan_.rows;
    }
    for (PickedRows::Picks& picks : plan_.picks) {
      picks.start = at;
      at += (std::int64_t{4} * plan_.columns + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
    }
    plan_.firsts_start = at;
    at += std::int64_t{4} * plan_.rows * static_cast<std::int64_t>(plan_.sources.size());
    plan_.shared_bytes = (at + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
  }

  // Sources that begin where those of the row before end are one piece of memory.
  bool follow_one_another(const PickedRows::Source& source) {
    samples_.move_to(0);
    const std::int64_t first = samples_.value(source.first);
    samples_.move_to(plan_.columns);
    return samples_.value(source.first) == first + source.length;
  }

  double sectors() {
    double sectors = 0;
    for (const ExprId id : ids_) {
      if (pool_[id].op != ExprOp::kLoad || samples_.is_of_table(id)) continue;
      const double bytes = bits(pool_[id].dtype) / 8.0;
      const auto source = std::ranges::find(plan_.sources, id, &PickedRows::Source::load);
      const bool for_places = std::ranges::find(looked_up_, id) != looked_up_.end();
      if (source != plan_.sources.end()) {
        const bool whole = proves_multiple_of(source->first, static_cast<int>(kSectorBytes / bytes), pool_.bounds());
        const double more = whole ? 0 : follow_one_another(*source) ? 1.0 / plan_.rows : 1;
        sectors += (source->length * bytes / kSectorBytes + more) / plan_.columns;
      } else if (for_places && same_for_all_rows(id) && !plan_.picks.empty()) {
        sectors += bytes / kSectorBytes / plan_.rows;
      } else {
        sectors += samples_.sectors_a_point(id, 1, false);
      }
    }
    return sectors;
  }

  const Kernel& kernel_;
  const ExprPool& pool_;
  const Graph& graph_;
  const Target& target_;
  const std::vector<std::vector<std::uint32_t>> depends_;
  AccessSamples samples_;
  std::uint32_t last_ = 0;
  std::vector<ExprId> ids_, looked_up_;  // all; those that say which elements are picked
  PickedRows plan_;
};

}  // namespace

std::optional<PickedRows> plan_picked_rows(const Kernel& kernel, const Graph& graph, const Target& target) {
  if (needs_wide_index(kernel, graph, point_count(kernel.pool, kernel.outputs[0].axes) + kMostPickedBytes))
    return std::nullopt;
  return PickedRowsPlanner(kernel, graph, target).run();
}

}  // namespace fusec
