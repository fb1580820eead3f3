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
