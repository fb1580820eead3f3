#include "schedule/reduction/unrolled_reductions.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/kernel/axis_merging.h"
#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "analysis/kernel/reduction_rewrites.h"
#include "ir/type.h"
#include "schedule/kernel_forms.h"
#include "schedule/movement/unaligned_load.h"

namespace fusec {
namespace {

// The elements of a reduction that contains only loads and arithmetic; nothing for others.
std::optional<std::int64_t> elements_of(const ExprPool& pool, ExprId reduction) {
  const ExprNode& n = pool[reduction];
  if (!combining_op(n.reduction)) return std::nullopt;
  for (const ExprId inner : reachable(pool, std::span(n.args.data(), 1)))
    if (pool[inner].op == ExprOp::kReduce) return std::nullopt;
  const auto elements = point_count(pool, n.axes).as_constant();
  return elements && *elements > 0 ? elements : std::nullopt;
}

// Combines element after element, the last axis fastest.
ExprId written(const Kernel& kernel, ExprId reduction, ExprPool& to, const ExprCopier& around) {
  const ExprPool& pool = kernel.pool;
  const ExprNode& n = pool[reduction];
  const std::int64_t elements = *elements_of(pool, reduction);
  ExprId all = kNoExpr;
  for (std::int64_t element = 0; element < elements; ++element) {
    ExprCopier copier(pool, to);
    copier.axis = around.axis;
    std::int64_t rest = element;
    for (auto axis = n.axes.rbegin(); axis != n.axes.rend(); ++axis) {
      const std::int64_t extent = *pool.extent(*axis).as_constant();
      copier.axis[*axis] = IndexExpr(rest % extent);
      rest /= extent;
    }
    ExprId value = copier.copy(n.args[0]);
    // A sum starts with +0: a sum of elements that are all -0 is then +0.
    if (element == 0 && n.reduction == Reduction::kSum) value = to.reduce(Reduction::kSum, {}, value);
    all = element == 0 ? value : to.binary(*combining_op(n.reduction), all, value);
  }
  return all;
}

// True if each result has its own reductions. Otherwise results that share one would compute it several times.
bool each_has_its_own(const Kernel& kernel) {
  const Dependences depends = dependences(kernel.pool);
  std::vector<std::uint32_t> axes = kernel.outputs[0].axes;
  std::ranges::sort(axes);
  return std::ranges::all_of(reachable(kernel.pool, roots_of(kernel)), [&](ExprId id) {
    return kernel.pool[id].op != ExprOp::kReduce || std::ranges::includes(depends[id], axes);
  });
}

// Tensors that reductions read.
std::set<ValueId> reduced_tensors(const Kernel& kernel) {
  std::vector<ExprId> reductions;
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel)))
    if (kernel.pool[id].op == ExprOp::kReduce) reductions.push_back(id);
  std::set<ValueId> tensors;
  for (const ExprId id : reachable(kernel.pool, reductions))
    if (kernel.pool[id].op == ExprOp::kLoad) tensors.insert(kernel.pool[id].source);
  return tensors;
}

// The loads and stores of a pointwise kernel with lanes as its last axis.
class LanesInVectors {
 public:
  LanesInVectors(const Kernel& kernel, const Graph& graph, int width)
      : kernel_(kernel), pool_(kernel.pool), graph_(graph), width_(width), depends_(dependences(kernel.pool)) {}

  // True if all results are stored in vectors, all lane accesses are whole vectors, and each vector of the `reduced`
  // tensors is read by one thread.
  bool hold(const std::set<ValueId>& reduced) {
    constexpr int kMostWords = 64;  // in flight per thread
    for (const KernelOutput& output : kernel_.outputs)
      if (!is_stored(output)) return false;
    for (const ExprId id : reachable(pool_, roots_of(kernel_)))
      if (pool_[id].op == ExprOp::kLoad && depends(id, lane()) && !see(id)) return false;
    int words = 0;
    for (const auto& [window, bytes] : windows_) words += bytes / 4;
    // A result of a single run of vectors shares none with its neighbours.
    if (windows_.size() == 1 && disjoint_vectors_) return false;
    return words <= kMostWords && std::ranges::all_of(reduced, [&](ValueId v) { return is_read_once(v); });
  }

 private:
  std::uint32_t lane() const { return kernel_.outputs[0].axes.back(); }
  std::uint32_t group() const { return *(kernel_.outputs[0].axes.end() - 2); }
  bool depends(ExprId id, std::uint32_t axis) const { return std::ranges::binary_search(depends_[id], axis); }

  bool is_stored(const KernelOutput& output) const {
    constexpr int kLeastBits = 32;
    const Bounds& bounds = pool_.bounds();
    const IndexExpr first = simplify(position_of(pool_, output) - IndexExpr::axis(lane()), bounds);
    return bits(output.type.dtype) * width_ >= kLeastBits && !mentions(first, {Variable::Kind::kAxis, lane()}) &&
           proves_multiple_of(first, width_, bounds);
  }

  bool see(ExprId load) {
    const ExprNode& n = pool_[load];
    if (std::ranges::any_of(values_in(n), [&](ExprId value) { return depends(value, lane()); })) return false;
    const auto window =
        find_unaligned_load(kernel_, graph_, load, position_of(graph_, pool_, load), {{lane(), width_}}, group());
    if (!window || !window->aligned) return false;
    windows_[{n.source, window->first, n.args[0]}] = 4 * window->words;
    const auto step = coefficient_of(window->element, {Variable::Kind::kAxis, lane()});
    disjoint_vectors_ = step && *step * bits(n.dtype) % 128 == 0;
    return true;
  }

  // True if about every element is read once; elements under a false mask count as read.
  bool is_read_once(ValueId tensor) const {
    constexpr double kOnce = 1.1;
    double of_thread = 0;
    for (const auto& [window, bytes] : windows_)
      if (std::get<0>(window) == tensor) of_thread += bytes;
    const std::vector<std::uint32_t>& axes = kernel_.outputs[0].axes;
    const auto threads =
        static_cast<double>(value_at_hint(point_count(pool_, {axes.begin(), axes.end() - 1}), pool_.bounds().symbols));
    return of_thread * threads <= kOnce * static_cast<double>(bytes_at_hint(graph_.tensor(tensor), graph_.symbols));
  }

  const Kernel& kernel_;
  const ExprPool& pool_;
  const Graph& graph_;
  const int width_;
  const Dependences depends_;
  std::map<std::tuple<ValueId, IndexExpr, ExprId>, int> windows_;  // and their bytes
  bool disjoint_vectors_ = false;  // neighbouring results share no vectors of the last window
};

}  // namespace

std::optional<Kernel> with_reductions_unrolled(const Kernel& kernel, std::int64_t most) {
  std::int64_t elements = 0;
  std::vector<ExprId> reductions;
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel))) {
    if (kernel.pool[id].op != ExprOp::kReduce) continue;
    const auto own = elements_of(kernel.pool, id);
    if (!own || *own > most) return std::nullopt;
    elements += *own;
    reductions.push_back(id);
  }
  if (reductions.empty() || elements > most) return std::nullopt;
  Kernel of_results = kernel;  // named values inside reductions would be ambiguous
  std::erase_if(of_results.named,
                [&](const NamedExpr& named) { return std::ranges::find(reductions, named.expr) == reductions.end(); });
  return change_axes(of_results, [&](ExprPool& to, ExprCopier& copier) {
    copier.rewritten = [&](ExprId id, const ExprCopier::Copied&) {
      return std::ranges::find(reductions, id) != reductions.end() ? written(kernel, id, to, copier) : kNoExpr;
    };
    return same_axes(kernel, to);
  });
}

std::optional<Kernel> find_unrolled_reductions(const Kernel& kernel, const Graph& graph) {
  constexpr std::int64_t kMostElements = 32;
  if (writes_half_bytes(kernel)) return std::nullopt;
  const Kernel shaped = drop_unit_axes(kernel);
  if (shaped.outputs[0].axes.empty() || !each_has_its_own(shaped)) return std::nullopt;
  std::optional<Kernel> written = with_reductions_unrolled(shaped, kMostElements);
  if (!written) return std::nullopt;
  const Kernel merged = merge_axes(*written, graph);
  const std::vector<std::uint32_t>& axes = merged.outputs[0].axes;
  const IndexExpr& columns = merged.pool.extent(axes.back());
  const std::set<ValueId> reduced = reduced_tensors(shaped);
  int widest = 8;
  for (const KernelOutput& output : merged.outputs) widest = std::max(widest, bits(output.type.dtype));
  for (int width = 128 / widest; width >= 2; width /= 2) {
    if (axes.size() > 1 && !proves_multiple_of(columns, width, merged.pool.bounds())) continue;
    const Kernel split = split_last_axis(merged, width);
    if (LanesInVectors(split, graph, width).hold(reduced)) return written;
  }
  return std::nullopt;
}

}  // namespace fusec
