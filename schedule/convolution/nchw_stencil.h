// Plans sums and extremes over overlapping windows in NCHW: depthwise convolutions, grouped convolutions with few
// channels per group, and pooling. A block copies the input of its windows to shared memory, each element once and
// ready to accumulate (masked, widened, after its prologue). Each thread has several neighbouring results, of all
// channels of a group.
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
#include "schedule/convolution/windows.h"
#include "schedule/target/target.h"

namespace fusec {

// Tile sizes of a block and of a thread.
struct NchwStencilTiles {
  int columns = 4, rows = 1;                            // results of a thread
  int thread_columns = 1, thread_rows = 1, planes = 1;  // threads of a block
  int points_per_stage = 1;                             // points of the looped axes per shared-memory stage
  int line = 4, plane = 4;                              // strides of a line and of a plane there, in 4-byte elements
  int threads() const { return (thread_columns * thread_rows * planes + 31) / 32 * 32; }
  int block_columns() const { return columns * thread_columns; }
  int block_rows() const { return rows * thread_rows; }
};

struct NchwStencil {
  Kernel kernel;  // channels of a group are an axis of their own
  StencilAxis columns;
  std::optional<StencilAxis> rows;
  std::vector<std::uint32_t> planes;       // other axes of the outputs
  std::optional<std::uint32_t> member;     // output channel within a group; the staged input does not depend on it
  std::vector<std::uint32_t> rolled_axes;  // reduction axes other than taps
  std::vector<ExprId> reductions;
  std::vector<ExprId> staged;   // values at an input position
  std::vector<ExprId> weights;  // values that do not depend on the result's position
  // The kernel with columns as vectors of `tiles.columns` lanes, and its expressions.
  LaneSplit vectors;
  std::vector<ExprId> reductions_of_vectors, staged_of_vectors, weights_of_vectors;

  NchwStencilTiles tiles;
  int copy_width = 1;  // elements per copy
  int before = 0;      // elements of the first copy before a block's first position

  std::int64_t members() const { return member ? *kernel.pool.extent(*member).as_constant() : 1; }
  std::int64_t points() const;  // of the looped axes
  std::int64_t block_width() const { return columns.reach(tiles.block_columns()); }
  std::int64_t block_height() const { return rows ? rows->reach(tiles.block_rows()) : 1; }
  std::int64_t taps() const { return columns.taps * (rows ? rows->taps : 1); }
  std::int64_t copies() const { return (block_width() + before + copy_width - 1) / copy_width; }  // per line
  // 4-byte elements that a thread loads of a line, from the vector that holds its first position.
  std::int64_t elements_per_thread_line() const { return (before + columns.reach(tiles.columns) + 3) / 4 * 4; }
  std::int64_t tile_elements() const { return std::int64_t{tiles.planes} * tiles.points_per_stage * tiles.plane; }
  // Stride of a plane's weights in shared memory; neighbouring planes are in different banks.
  std::int64_t weights_per_plane() const;
  // Members with weights loaded by one vector.
  std::int64_t members_per_weight_vector() const { return members() % 4 == 0 ? 4 : members() % 2 == 0 ? 2 : 1; }
  std::int64_t weight_elements() const { return tiles.planes * weights_per_plane(); }
  std::int64_t shared_bytes() const;

  double blocks = 1, instructions = 0;  // predicted, summed over all threads
};

std::optional<NchwStencil> find_nchw_stencil(const Kernel& kernel, const Graph& graph, const Target& target);

}  // namespace fusec
