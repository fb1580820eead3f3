#include "analysis/kernel/counted_points.h"

#include <algorithm>
#include <bit>
#include <map>

#include "ir/budget.h"

namespace fusec {

Axes united(Axes a, std::span<const std::uint32_t> b) {
  for (const std::uint32_t axis : b)
    if (std::ranges::find(a, axis) == a.end()) a.push_back(axis);
  return a;
}

CountedPoints::CountedPoints(const Kernel& kernel) : pool_(kernel.pool), depends_(dependences(pool_)) {
  for (const IndexExpr& extent : pool_.bounds().axes) extents_.push_back(at_hint(extent));
}

double CountedPoints::points(std::span<const std::uint32_t> axes) const {
  double product = 1;
  for (const std::uint32_t axis : axes) product *= extents_[axis];
  return product;
}

std::vector<ExprId> CountedPoints::between(const std::vector<ExprId>& roots, const std::vector<ExprId>& stops) const {
  std::vector<std::uint8_t> wanted(pool_.size(), 0);
  for (const ExprId root : roots) wanted[root] = 1;
  std::vector<ExprId> found;
  for (std::size_t i = pool_.size(); i-- > 0;) {
    count_step();
    const auto id = static_cast<ExprId>(i);
    if (!wanted[id] || std::ranges::find(stops, id) != stops.end()) continue;
    found.push_back(id);
    for (const ExprId a : pool_[id].args)
      if (a != kNoExpr) wanted[a] = 1;
    for (const IndexExpr& e : pool_[id].indices)
      for (const Variable v : variables_of(e))
        if (v.kind == Variable::Kind::kValue) wanted[v.id] = 1;
  }
  std::ranges::reverse(found);
  return found;
}

double CountedPoints::at_hint(const IndexExpr& e) const {
  const bool of_symbols =
      std::ranges::all_of(variables_of(e), [](const Variable v) { return v.kind == Variable::Kind::kSymbol; });
  return static_cast<double>(of_symbols ? value_at_hint(e, pool_.bounds().symbols) : range_of(e, pool_.bounds()).max);
}

std::string CountedPoints::index_text(const std::vector<IndexExpr>& index,
                                      const std::vector<std::uint32_t>& classes) const {
  std::string text;
  for (const IndexExpr& e : index)
    text += to_string(e,
                      [&](Variable v) {
                        if (v.kind == Variable::Kind::kAxis) return "a" + std::to_string(extents_[v.id]);
                        const bool value = v.kind == Variable::Kind::kValue;
                        const std::uint32_t number = value && !classes.empty() ? classes[v.id] : v.id;
                        return (value ? "v" : "s") + std::to_string(number);
                      }) +
            ",";
  return text;
}

std::vector<ExprId> CountedPoints::distinct(const std::vector<ExprId>& nodes) const {
  std::map<std::string, std::uint32_t> known;
  std::vector<std::uint32_t> classes(pool_.size(), 0);
  std::vector<ExprId> found;
  for (const ExprId id : nodes) {
    count_step();
    const ExprNode& node = pool_[id];
    std::string text = std::to_string(static_cast<int>(node.op)) + "." + std::to_string(static_cast<int>(node.type)) +
                       "." + std::to_string(static_cast<int>(node.dtype)) + "." +
                       std::to_string(static_cast<int>(node.reduction)) + "." + std::to_string(node.source) + "." +
                       std::to_string(node.integer) + "." + std::to_string(std::bit_cast<std::uint64_t>(node.real)) +
                       "(";
    for (const ExprId a : node.args) text += a == kNoExpr ? "-," : std::to_string(classes[a]) + ",";
    text += index_text(node.indices, classes);
    for (const std::uint32_t axis : node.axes) text += "a" + std::to_string(extents_[axis]) + ",";
    const auto [at, fresh] = known.try_emplace(std::move(text), static_cast<std::uint32_t>(known.size()));
    classes[id] = at->second;
    if (fresh) found.push_back(id);
  }
  return found;
}

}  // namespace fusec
