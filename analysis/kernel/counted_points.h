// A kernel's expressions with their axes' extents at the hints: how many elements each stands for, which of them are
// needed for what. What work and operations are counted with (schedule/cost/work, analysis/kernel/formula_flops).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"

namespace fusec {

using Axes = std::vector<std::uint32_t>;

Axes united(Axes a, const Axes& b);

class CountedPoints {
 public:
  explicit CountedPoints(const Kernel& kernel);

  const Axes& depends(ExprId id) const { return depends_[id]; }
  double points(const Axes& axes) const;
  double extent(std::uint32_t axis) const { return extents_[axis]; }

  // What is needed for these roots, without what `stops` stand on; the stops themselves are not in it.
  std::vector<ExprId> between(const std::vector<ExprId>& roots, const std::vector<ExprId>& stops) const;

  // From now on this axis counts as one: of the matrices that it numbers, each row takes one.
  void choose_along(std::uint32_t axis) { extents_[axis] = 1; }

  // Axes by their extents: what reads the same elements in another order is equal. `classes`: by value, if any.
  std::string index_text(const std::vector<IndexExpr>& index, const std::vector<std::uint32_t>& classes) const;
  // The first of those that are equal but for the names of axes of one extent; operands come first.
  std::vector<ExprId> distinct(const std::vector<ExprId>& nodes) const;

 private:
  double at_hint(const IndexExpr& e) const;

  const ExprPool& pool_;
  std::vector<Axes> depends_;
  std::vector<double> extents_;
};

}  // namespace fusec
