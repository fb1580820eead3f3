// Sums and extremes over windows that overlap, of tensors along whose last dimension windows move: depthwise
// convolutions, those in groups of few channels, pooling. A block copies what the windows of its results have between
// them to shared memory, each element once and as what is summed (guarded, widened, behind what stands before it), and
// each thread has several neighbouring results, of all channels of a group.
//
//   y[n, g, m, i, j] = sum over c, u, v of x[n, g, c, i + u - 1, j + v - 1] * w[g, m, c, u, v]
//
//   columns: j with v, rows: i with u; staged x, at place i + u and j + v; weights w; member m; planes n, g; looped c
//   thread: results j = 4 t .. 4 t + 3 of two rows and all m: for each u two vectors of x and the weights of all v
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"
#include "schedule/target/target.h"

namespace fusec {

// What is read depends on stride * result + dilation * tap, and on neither otherwise.
struct StencilAxis {
  std::uint32_t result = 0, tap = 0;
  std::int64_t stride = 1, dilation = 1, taps = 1;
  // Places from the first result's first tap to the last one's last.
  std::int64_t reach(std::int64_t results) const { return (results - 1) * stride + (taps - 1) * dilation + 1; }
};

// What of the kernel a block has, and a thread of it.
struct NchwStencilTiles {
  int columns = 4, rows = 1;                            // results of a thread
  int thread_columns = 1, thread_rows = 1, planes = 1;  // threads of a block
  int points_per_stage = 1;                             // points of the looped axes in shared memory at a time
  int line = 4, plane = 4;  // elements of 4 bytes there, from a line to the next and from a plane
  int threads() const { return (thread_columns * thread_rows * planes + 31) / 32 * 32; }
  int block_columns() const { return columns * thread_columns; }
  int block_rows() const { return rows * thread_rows; }
};

struct NchwStencil {
  Kernel kernel;  // channels of a group as an axis of their own
  StencilAxis columns;
  std::optional<StencilAxis> rows;
  std::vector<std::uint32_t> planes;       // other axes of the outputs
  std::optional<std::uint32_t> member;     // of the outputs, what is staged does not depend on it
  std::vector<std::uint32_t> rolled_axes;  // axes of the reductions but taps
  std::vector<ExprId> reductions;
  std::vector<ExprId> staged;   // values at a place of the windows
  std::vector<ExprId> weights;  // values that no result's place changes
  // Columns as vectors of `tiles.columns` lanes, which are the last axes; the same values there.
  Kernel vectors;
  std::uint32_t vector = 0, lane = 0;
  std::vector<ExprId> reductions_of_vectors, staged_of_vectors, weights_of_vectors;

  NchwStencilTiles tiles;
  int copied = 1;  // elements that are read at a time
  int before = 0;  // of these, in front of a block's first place

  std::int64_t members() const { return member ? *kernel.pool.extent(*member).as_constant() : 1; }
  std::int64_t points() const;  // of the looped axes
  std::int64_t block_width() const { return columns.reach(tiles.block_columns()); }
  std::int64_t block_height() const { return rows ? rows->reach(tiles.block_rows()) : 1; }
  std::int64_t taps() const { return columns.taps * (rows ? rows->taps : 1); }
  std::int64_t copies() const { return (block_width() + before + copied - 1) / copied; }  // of a line
  // Elements of 4 bytes that a thread loads of a line, from the vector in which its first place is.
  std::int64_t line_of_thread() const { return (before + columns.reach(tiles.columns) + 3) / 4 * 4; }
  std::int64_t tile_elements() const { return std::int64_t{tiles.planes} * tiles.points_per_stage * tiles.plane; }
  // Of a plane's weights, in shared memory: those of another plane are in other banks.
  std::int64_t weights_of_plane() const;
  // Members' weights that are loaded at a time.
  std::int64_t weights_together() const { return members() % 4 == 0 ? 4 : members() % 2 == 0 ? 2 : 1; }
  std::int64_t weight_elements() const { return tiles.planes * weights_of_plane(); }
  std::int64_t shared_bytes() const;

  double blocks = 1, instructions = 0;  // as predicted, of all threads
};

std::optional<NchwStencil> find_nchw_stencil(const Kernel& kernel, const Graph& graph, const Target& target);

}  // namespace fusec
