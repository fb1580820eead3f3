// Counts how many elements each expression of a kernel stands for, with axis extents at the symbols' hints, and finds
// the expressions that some roots need. The counts of work and of operations use it (schedule/plan/count_work,
// analysis/kernel/formula_flops).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"

namespace fusec {

using Axes = std::vector<std::uint32_t>;

Axes united(Axes a, std::span<const std::uint32_t> b);

class CountedPoints {
 public:
  explicit CountedPoints(const Kernel& kernel);

  std::span<const std::uint32_t> depends(ExprId id) const { return depends_[id]; }
  double points(std::span<const std::uint32_t> axes) const;
  double extent(std::uint32_t axis) const { return extents_[axis]; }

  // Returns what `roots` need, operands first, without `stops` and what only they need.
  std::vector<ExprId> between(const std::vector<ExprId>& roots, const std::vector<ExprId>& stops) const;

  // Counts this axis as extent 1 from now on. Used for the axis of expert matrices: each row uses one matrix.
  void choose_along(std::uint32_t axis) { extents_[axis] = 1; }

  // Returns a text that names each axis by its extent, so that indices with the axes in another order of the same
  // extents are equal. `classes` (by value, may be empty) gives equal numbers to equal loaded values.
  std::string index_text(const std::vector<IndexExpr>& index, const std::vector<std::uint32_t>& classes) const;
  // Returns the first of each set of expressions that are equal up to the names of axes with equal extents. `nodes` has
  // operands first.
  std::vector<ExprId> distinct(const std::vector<ExprId>& nodes) const;

 private:
  double at_hint(const IndexExpr& e) const;

  const ExprPool& pool_;
  Dependences depends_;
  std::vector<double> extents_;
};

}  // namespace fusec
