#include "analysis/interleaved_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "analysis/row_teams.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kMostRows = 32;
constexpr int kMostTurns = 16;
constexpr int kMostShared = 40 * 1024;
constexpr std::int64_t kOfWarp = 2048;  // elements that a warp takes

// Reads the form: which loads and stores are of elements as they follow one another.
class Reader {
 public:
  Reader(const RowForm& form, const Graph& graph)
      : form_(form), graph_(graph), pool_(form.kernel.pool), depends_(dependences(pool_)) {}

  std::optional<InterleavedRows> read() {
    if (!find_axes()) return std::nullopt;
    for (const ExprId id : reachable(pool_, roots_of(form_.kernel)))
      if (!see(id)) return std::nullopt;
    if (way_.loads.empty()) return std::nullopt;
    for (const KernelOutput& output : form_.kernel.outputs) {
      const std::size_t lacking = columns_without(form_, output).size();
      if (form_.columns.empty() || lacking == form_.columns.size()) continue;
      const DType dtype = output.type.dtype;
      if (lacking != 0 || bits(dtype) < 8 ||
          !follows(simplify(flat_index(output.type.shape, output.index), pool_.bounds()), form_.columns[0]))
        return std::nullopt;
      see_width(dtype);
    }
    way_.width = std::clamp(128 / widest_, 1, 8);
    if (way_.width * narrowest_ % 32 != 0) return std::nullopt;
    return way_;
  }
  int widest_bits() const { return widest_; }

 private:
  bool find_axes() {
    if (form_.rows.empty() || form_.columns.size() > 1) return false;
    std::optional<IndexExpr> length;
    std::vector<std::uint32_t> along = form_.columns;
    for (const ExprId r : form_.reductions) {
      if (pool_[r].axes.size() != 1) return false;
      along.push_back(pool_[r].axes[0]);
    }
    for (const std::uint32_t axis : along) {
      if (length && *length != pool_.extent(axis)) return false;
      length = pool_.extent(axis);
    }
    length_ = *length;
    along_ = std::move(along);
    std::ranges::sort(along_);
    for (const std::uint32_t a : form_.rows) {  // the first load says which is the inner one
      const auto extent = pool_.extent(a).as_constant();
      if (!extent || *extent < 2 || *extent > kMostRows || !is_innermost(a)) continue;
      way_.inner = a;
      way_.rows = static_cast<int>(*extent);
      for (const std::uint32_t other : form_.rows)
        if (other != a) {
          way_.outer.push_back(other);
          outer_ = outer_ * pool_.extent(other) + IndexExpr::axis(other);
        }
      return true;
    }
    return false;
  }

  IndexExpr position(const ExprNode& load) const {
    return simplify(flat_index(graph_.tensor(load.source).shape, load.indices), pool_.bounds());
  }
  bool runs_along(ExprId id) const {
    return std::ranges::any_of(along_, [&](std::uint32_t a) { return std::ranges::binary_search(depends_[id], a); });
  }

  bool is_innermost(std::uint32_t axis) const {
    for (const ExprId id : reachable(pool_, roots_of(form_.kernel)))
      if (pool_[id].op == ExprOp::kLoad && runs_along(id))
        return coefficient_of(position(pool_[id]), {Variable::Kind::kAxis, axis}) == 1;
    return false;
  }

  bool follows(const IndexExpr& at, std::uint32_t axis) const {
    const IndexExpr place = (outer_ * length_ + IndexExpr::axis(axis)) * way_.rows + IndexExpr::axis(way_.inner);
    return simplify(at - place, pool_.bounds()).is(0);
  }

  void see_width(DType dtype) {
    widest_ = std::max(widest_, bits(dtype));
    narrowest_ = std::min(narrowest_, bits(dtype));
  }

  bool see(ExprId id) {
    const ExprNode& n = pool_[id];
    if (n.op == ExprOp::kReduce && std::ranges::find(form_.reductions, id) == form_.reductions.end()) return false;
    if (n.op != ExprOp::kLoad || !runs_along(id)) return true;
    if (n.args[0] != kNoExpr || bits(n.dtype) < 8) return false;
    const IndexExpr at = position(n);
    if (std::ranges::none_of(along_, [&](std::uint32_t a) { return follows(at, a); })) return false;
    see_width(n.dtype);
    way_.loads.push_back(id);
    return true;
  }

  const RowForm& form_;
  const Graph& graph_;
  const ExprPool& pool_;
  std::vector<std::vector<std::uint32_t>> depends_;
  std::vector<std::uint32_t> along_;  // axes that run along a row
  IndexExpr length_ = 1, outer_ = 0;
  int widest_ = 8, narrowest_ = 64;
  InterleavedRows way_;
};

bool is_wide(ScalarType type) {
  return type == ScalarType::kFloat64 || type == ScalarType::kInt64 || type == ScalarType::kUInt64;
}

bool has_wide_values(const RowForm& form) {
  const ExprPool& pool = form.kernel.pool;
  return std::ranges::any_of(form.reductions, [&](ExprId r) { return is_wide(pool[pool[r].args[0]].type); });
}

int bytes_of_partial(const RowForm& form) {
  int bytes = 4;
  for (const ExprId r : form.reductions) {
    const ExprNode& n = form.kernel.pool[r];
    int mine = is_wide(form.kernel.pool[n.args[0]].type) ? 8 : 4;
    if (n.reduction == Reduction::kArgMax || n.reduction == Reduction::kArgMin) mine += 8;
    bytes = std::max(bytes, mine);
  }
  return bytes;
}

// Threads of a team of which so many work.
int working(int team, int rows, int width) {
  const int period = rows / std::gcd(rows, width);
  return team / period * period;
}

}  // namespace

std::optional<InterleavedRows> interleaved_rows(const RowForm& form, const Graph& graph, const Target& target) {
  Reader reader(form, graph);
  std::optional<InterleavedRows> way = reader.read();
  if (!way) return std::nullopt;
  const ExprPool& pool = form.kernel.pool;
  const std::vector<Symbol>& symbols = pool.bounds().symbols;
  const IndexExpr elements = point_count(pool, pool[form.reductions[0]].axes) * way->rows;
  const std::int64_t length = value_at_hint(elements, symbols);
  const std::int64_t groups = std::max<std::int64_t>(1, value_at_hint(point_count(pool, way->outer), symbols));
  if (length < 64 * way->rows) return std::nullopt;  // short ones: a thread each, or so
  // Results of 8 bytes at several places would meet in the banks of shared memory.
  const std::vector<int> stages = stages_of(form);
  const int last_stage = *std::ranges::max_element(stages);
  if (has_wide_values(form) && (last_stage > 0 || !form.columns.empty())) return std::nullopt;
  const std::int64_t vectors = (length + way->width - 1) / way->width;
  const std::size_t partial = static_cast<std::size_t>(bytes_of_partial(form));
  if (length <= kOfWarp && groups > 1 && 4 * working(32, way->rows, way->width) >= 3 * 32) {
    way->team = 32;
    way->teams = 4;
  } else {
    way->team = 64;
    const auto may_be = [&](int threads) {
      return static_cast<std::size_t>(threads * way->width) * partial * 33 / 32 <= kMostShared && threads <= 512;
    };
    const auto busy = [&] { return 4 * working(way->team, way->rows, way->width) >= 3 * way->team; };
    while (may_be(2 * way->team) && (!busy() || vectors > 8 * way->team)) way->team *= 2;
    if (!busy()) return std::nullopt;
    way->chunks = chunks_of_columns({.blocks = groups,
                                     .length = length,
                                     .stages = 1 + last_stage,
                                     .columns = !form.columns.empty(),
                                     .bytes = reader.widest_bits() / 8.0,
                                     .bytes_read = reader.widest_bits() / 8.0},
                                    target);
    // What chunks leave is little beside what they read.
    const double read = static_cast<double>(length) * reader.widest_bits() / 8;
    const double most = read / (64.0 * static_cast<double>(partial) * way->rows);
    if (way->chunks > most) way->chunks = std::max(1, static_cast<int>(most));
  }
  // Few threads to a chunk: what they have is joined.
  while (way->chunks > 1 && way->team > 128 && 4 * working(way->team / 2, way->rows, way->width) >= 3 * way->team / 2 &&
         vectors / way->chunks < 16 * way->team)
    way->team /= 2;
  way->parts = working(way->team, way->rows, way->width);
  const std::int64_t most = range_of(elements, pool.bounds()).max;
  const std::int64_t turns = (most / way->width + way->parts - 1) / way->parts;
  way->kept_turns = way->chunks == 1 && turns >= 1 && turns <= kMostTurns ? static_cast<int>(turns) : 0;
  return way;
}

std::string name_of(const InterleavedRows& way) {
  return fmt::format("{} threads for {} interleaved rows, {} blocks each", way.parts, way.rows, way.chunks);
}

}  // namespace fusec
