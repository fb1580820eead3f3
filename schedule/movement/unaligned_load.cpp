#include "schedule/movement/unaligned_load.h"

#include <algorithm>

#include "analysis/kernel/loads.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kMostVectors = 4;

// The position of lane `lane` of all, the last axis the fastest.
IndexExpr at_lane(const IndexExpr& e, const std::vector<LaneAxis>& lanes, int lane) {
  return substitute(e, [&](Variable v) -> std::optional<IndexExpr> {
    int left = lane;
    for (std::size_t i = lanes.size(); i-- > 0; left /= lanes[i].count)
      if (v == Variable{Variable::Kind::kAxis, lanes[i].axis}) return left % lanes[i].count;
    return std::nullopt;
  });
}

bool is_of_lanes_alone(const IndexExpr& e, const std::vector<LaneAxis>& lanes) {
  return std::ranges::all_of(variables_of(e), [&](Variable v) {
    return v.kind == Variable::Kind::kAxis && std::ranges::find(lanes, v.id, &LaneAxis::axis) != lanes.end();
  });
}

}  // namespace

std::optional<UnalignedLoad> find_unaligned_load(const Kernel& kernel, const Graph& graph, ExprId load,
                                                 const IndexExpr& position, const std::vector<LaneAxis>& lanes,
                                                 std::uint32_t group_axis) {
  const ExprNode& n = kernel.pool[load];
  const Bounds& bounds = kernel.pool.bounds();
  const int size = bits(n.dtype);
  if (size < 8) return std::nullopt;
  const IndexExpr origin = simplify(at_lane(position, lanes, 0), bounds);
  std::int64_t least = 0, greatest = 0;
  int width = 1;
  for (const LaneAxis& axis : lanes) width *= axis.count;
  for (int lane = 1; lane < width; ++lane) {
    const auto distance = simplify(simplify(at_lane(position, lanes, lane), bounds) - origin, bounds).as_constant();
    if (!distance || *distance > 1024 || *distance < -1024) return std::nullopt;
    least = std::min(least, *distance);
    greatest = std::max(greatest, *distance);
  }
  UnalignedLoad window{.load = load, .first = origin + least, .element = simplify(position - origin - least, bounds)};
  if (!is_of_lanes_alone(window.element, lanes)) return std::nullopt;
  const auto step = coefficient_of(window.first, {Variable::Kind::kAxis, group_axis});
  window.backwards = step && *step < 0;
  const auto count = element_count(graph.tensor(n.source).shape);
  window.whole = count && proves_multiple_of(*count, 128 / size, bounds);

  const auto span = static_cast<int>(greatest - least) + 1;
  const int each = 128 / size;
  // Fewer words than a vector, as they lie there.
  for (const int words : {1, 2}) {
    const std::int64_t own = words * 32 / size;
    if (n.args[0] != kNoExpr || own == 0) continue;
    const std::int64_t behind = (window.first.constant_term() % own + own) % own;
    if (span + behind > own || !proves_multiple_of(window.first - behind, own, bounds)) continue;
    if (span < own && !(count && proves_multiple_of(*count, own, bounds)))
      continue;  // what no lane takes is there, too
    window.first = window.first - behind;
    window.element = window.element + behind;
    window.words = words;
    window.together = false;
    window.aligned = true;
    return window;
  }
  const auto vectors_for = [&](std::int64_t elements) { return static_cast<int>((elements + each - 1) / each); };
  int vectors = vectors_for(span);
  // From the vector on in which it begins, where the same number of them is enough.
  const std::int64_t behind = (window.first.constant_term() % each + each) % each;
  if (vectors_for(span + behind) == vectors && proves_multiple_of(window.first - behind, each, bounds)) {
    window.first = window.first - behind;
    window.element = window.element + behind;
    window.aligned = true;
  }
  if (vectors > kMostVectors) return std::nullopt;
  window.words = 4 * vectors;
  return window;
}

}  // namespace fusec
