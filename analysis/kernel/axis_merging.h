// Merges output axes that all accesses treat as one, so that a thread divides less to compute its indices:
//
//   y[i, j] = relu(x[i, j])   float32[64, 32]   ->   y[t] = relu(x[t])   t in 0 .. 2047
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "analysis/kernel/kernel.h"

namespace fusec {

// Returns the kernel without axes of extent 1, and with neighbouring output axes merged where that needs no more
// divisions than before.
Kernel merge_axes(const Kernel& kernel, const Graph& graph);

// Merges output axes pair by pair, while the positions of loads, index values and outputs need no more divisions and
// remainders than before.
class AxisMerger {
 public:
  AxisMerger(Kernel kernel, const Graph& graph);
  const Kernel& kernel() const { return kernel_; }
  // Merges the output axes at places `first` and `first` + 1. Returns whether it did. `accepts` may allow a merged
  // kernel that needs more divisions.
  bool merge(std::size_t first, const std::function<bool(const Kernel&)>& accepts = nullptr);

 private:
  bool tears_a_position(std::size_t first) const;

  Kernel kernel_;
  const Graph& graph_;
  std::vector<IndexExpr> positions_;  // of loads and outputs
  std::size_t divided_ = 0;           // positions and index values with a division or remainder
};

// --- single steps
Kernel drop_unit_axes(const Kernel& kernel);
// Merges the output axes at positions `first` and `first` + 1.
Kernel merge_pair(const Kernel& kernel, std::size_t first);
// Splits the last output axis into two: ceil(extent / width) groups and `width` lanes. `follow` holds expressions of
// `kernel` and receives their copies in the result.
Kernel split_last_axis(const Kernel& kernel, int width, std::span<ExprId> follow = {});
// Returns how many positions in the kernel (of loads, index values and outputs) contain a division or remainder.
std::size_t count_divisions(const Kernel& kernel, const Graph& graph);

}  // namespace fusec
