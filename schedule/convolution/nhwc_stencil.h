// Sums and extremes over few positions, of tensors whose channels lie last: depthwise convolutions and pooling. A
// thread has 16 bytes of channels of several neighbouring results, so that what their windows share is read once.
//
//   y[n, i, j, c] = sum over u, v of x[n, i + u - 1, j + v - 1, c] * w[c, u, v]
//
//   lanes c = 8 g .. 8 g + 7, results j = 4 t .. 4 t + 3: for each u six vectors of x instead of twelve; w, which lies
//   some other way, is turned round by each block, for its channels
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"
#include "schedule/target/target.h"

namespace fusec {

// An output axis of which a thread has so many neighbours.
struct CoarsenedAxis {
  std::uint32_t axis;
  int steps;
  bool enough = true;       // the axis has so many elements in any case
  std::uint32_t tiles = 0;  // an axis of the pool that counts the threads along it
};

// What a reduction reads of a tensor, in vectors along the lanes.
struct WindowLoad {
  ExprId load = kNoExpr;
  bool staged = false;  // of channels alone: in shared memory, as [points of the reduction][channels of the block]
};

struct NhwcStencil {
  static constexpr int kThreads = 128;  // of a block

  Kernel kernel;  // its outputs' axes: all others, vectors of channels, lanes
  std::uint32_t vectors = 0, lane = 0;
  int lanes = 8;
  int vectors_per_block = 8;                  // vectors of channels that a block has
  std::vector<std::uint32_t> rest;            // output axes but these two
  std::vector<CoarsenedAxis> coarsened_axes;  // some of them
  std::vector<std::uint32_t> rolled_axes;     // axes of the reductions that are loops; the others are written out
  std::vector<std::uint32_t> unrolled_axes;   // each with all its elements
  std::vector<ExprId> reductions;
  std::vector<WindowLoad> loads;
  bool whole_vectors = true;  // of 16 bytes
  bool overlapping = false;   // windows have something in common, or end where the tensor does

  // The elements of a load at a point of what is written out: equal ones are the same vector.
  using Point = std::vector<std::int64_t>;  // walks' steps, then written axes' elements
};

std::optional<NhwcStencil> find_nhwc_stencil(const Kernel& kernel, const Graph& graph, const Target& target);

// By how much the expression grows from the walks' first results and the first elements of what is written out.
std::int64_t offset_from_first(const NhwcStencil& windows, const IndexExpr& e, const NhwcStencil::Point& point);
// The same of all that says which vector a load is: where it lies, and whether it is there.
std::vector<std::int64_t> vector_key(const NhwcStencil& windows, ExprId load, const IndexExpr& position,
                                     const NhwcStencil::Point& point);
// All points, those first whose vectors lie first.
std::vector<NhwcStencil::Point> points_in_memory_order(const NhwcStencil& windows, const Graph& graph);

}  // namespace fusec
