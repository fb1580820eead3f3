// Plans sums and extremes over few positions in NHWC: depthwise convolutions and pooling. A thread has 16 bytes of
// channels of several neighbouring results, so that what their windows share is read once.
//
//   y[n, i, j, c] = sum over u, v of x[n, i + u - 1, j + v - 1, c] * w[c, u, v]
//
//   lanes c = 8 g .. 8 g + 7, results j = 4 t .. 4 t + 3: for each u six vectors of x instead of twelve; each block
//   transposes the weights w of its channels
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"
#include "schedule/target/target.h"

namespace fusec {

// An output axis with `steps` neighbours per thread.
struct CoarsenedAxis {
  std::uint32_t axis;
  int steps;
  bool enough = true;       // the extent is always at least `steps`
  std::uint32_t tiles = 0;  // a pool axis that counts threads along it
};

// A load of a reduction, in vectors along the lanes.
struct WindowLoad {
  ExprId load = kNoExpr;
  // Depends on channels only: in shared memory as [points of the reduction][channels of the block].
  bool staged = false;
};

struct NhwcStencil {
  static constexpr int kThreads = 128;  // per block

  Kernel kernel;  // its output axes: all others, vectors of channels, lanes
  std::uint32_t vectors = 0, lane = 0;
  int lanes = 8;
  int vectors_per_block = 8;                  // vectors of channels per block
  std::vector<std::uint32_t> rest;            // output axes other than these two
  std::vector<CoarsenedAxis> coarsened_axes;  // a subset of `rest`
  std::vector<std::uint32_t> rolled_axes;     // reduction axes that are loops; the others are unrolled
  std::vector<std::uint32_t> unrolled_axes;   // reduction axes that are fully unrolled
  std::vector<ExprId> reductions;
  std::vector<WindowLoad> loads;
  bool whole_vectors = true;  // of 16 bytes
  bool overlapping = false;   // windows overlap, or are clipped at the tensor's boundary

  // A point of the unrolled code. Loads with equal vector_key at two points read the same vector.
  using Point = std::vector<std::int64_t>;  // steps of `coarsened_axes`, then elements of `unrolled_axes`
};

std::optional<NhwcStencil> find_nhwc_stencil(const Kernel& kernel, const Graph& graph, const Target& target);

// How much the expression grows from the first point (all zeros) to this point.
std::int64_t offset_from_first(const NhwcStencil& stencil, const IndexExpr& e, const NhwcStencil::Point& point);
// Offsets of everything that determines a load's vector: its position and its padding conditions.
std::vector<std::int64_t> vector_key(const NhwcStencil& stencil, ExprId load, const IndexExpr& position,
                                     const NhwcStencil::Point& point);
// All points, in the order of their vectors in memory.
std::vector<NhwcStencil::Point> points_in_memory_order(const NhwcStencil& stencil, const Graph& graph);

}  // namespace fusec
