// What the finders of stencils ask of a kernel: its sums and extremes over windows, and its results as vectors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "analysis/kernel/kernel.h"

namespace fusec {

// The reductions of a kernel, operands before users. Nothing if one is inside another, or is an argmax or argmin.
std::optional<std::vector<ExprId>> window_reductions(const Kernel& kernel);
// True if all of them run over the same axes.
bool share_axes(const ExprPool& pool, std::span<const ExprId> reductions);
// The number of elements that a reduction reduces; nothing if that depends on symbols.
std::optional<std::int64_t> reduced_elements(const ExprPool& pool, ExprId reduction);

// A window axis: the input position is stride * result + dilation * tap.
struct StencilAxis {
  std::uint32_t result = 0, tap = 0;
  std::int64_t stride = 1, dilation = 1, taps = 1;
  // Input positions from the first result's first tap to the last result's last tap.
  std::int64_t reach(std::int64_t results) const { return (results - 1) * stride + (taps - 1) * dilation + 1; }
};

// The window along which a tap moves a result: some index increases with both.
std::optional<StencilAxis> window_of(const ExprPool& pool, std::span<const IndexExpr> indices, std::uint32_t result,
                                     std::uint32_t tap);
// True if the index is linear in result and tap, in the window's proportion.
bool moves_along(const IndexExpr& e, const StencilAxis& window);

// The axis along which neighbours are contiguous in all outputs, if there is one.
std::optional<std::uint32_t> contiguous_axis(const Kernel& kernel);

// A kernel with an output axis as vectors of `lanes` elements, which are the last two axes. The last vector may be
// partial.
struct LaneSplit {
  Kernel kernel;
  std::uint32_t vector = 0, lane = 0;
  std::map<std::uint32_t, std::uint32_t> now;  // the other output axes: old to new
};
// `follow` holds expressions of `kernel` and receives their copies.
LaneSplit with_lanes(const Kernel& kernel, std::uint32_t axis, int lanes, std::span<ExprId> follow);

}  // namespace fusec
