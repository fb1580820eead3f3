// Plans many short unaligned rows. A block copies a run of contiguous rows, 16 bytes at a time, into shared memory and
// widens them to the compute type. A few lanes take each row there. Stored results go back the same way. Vectors shared
// by all rows are read once per block.
//
//   32 rows of 33     x[1056 * block .. + 1056]  ->  x_tile  ->  4 lanes a row: elements 0 .. 8, 9 .. 17, 18 .. 26, ..
//                     y[1056 * block .. + 1056]  <-  y_tile  <-
//
// To avoid bank conflicts, every lane of a row (except the last) has the same odd number of elements, and neighbouring
// rows of a warp are `warp_row_stride` apart: the number of lanes divided by the largest power of two in the row
// length. If no such split exists, a warp takes one row.
//
// Operands that repeat over rows (attention bias, key masks) restrict runs to the rows' last axis. The block iterates
// over the axis along which they repeat most, so that one copy serves several runs.
//
//   x[b, r, k] + bias[r, k]     bias_tile; for (b = ..) x_tile  ->  y_tile   each b by other threads, or sequentially
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "schedule/reduction/row_form.h"
#include "schedule/target/target.h"

namespace fusec {

struct MultiRowBlock {
  // A tensor in shared memory: the rows of a run, or one row shared by them.
  struct Tile {
    ValueId value = kNone;  // source tensor; kNone: only stored
    DType dtype = DType::kFloat32;
    ScalarType type = ScalarType::kFloat32;
    bool whole = true;       // has an element for each element of all rows
    bool broadcast = false;  // has one row for the whole run
    bool per_run = true;     // differs between the runs of a block
    IndexExpr start = 0;     // position of row 0's first element, over the axes of rows outside runs
    bool aligned = true;     // starts at a multiple of 16 bytes
    int place = 0;           // offset in shared memory, in elements
    int elements = 0;        // elements in shared memory; parallel runs have one tile each, unless they share it
    friend bool operator==(const Tile&, const Tile&) = default;
  };
  static constexpr std::size_t kNoTile = ~std::size_t{0};

  int length = 1;           // elements of a row
  int lanes = 1;            // per row
  int step = 1;             // lane i starts at element i * step
  int stride = 1;           // elements between consecutive elements of a lane
  int iterations = 1;       // elements per lane, at most
  int warp_row_stride = 1;  // distance between neighbouring rows of a warp, in rows
  int threads = 32;         // per run
  int rows = 32;            // per run
  int elements = 0;         // of all tiles
  std::vector<Tile> tiles;
  std::map<ExprId, std::size_t> tile_of;  // by load
  std::vector<std::size_t> stored;        // by output: its tile; kNoTile if it has one element per row
  // Runs cover only the last axis of rows, not all rows. A block then has several runs along `repeated_axis`, on which
  // some tiles do not depend: `parallel_runs` at once, `sequential_runs` times.
  bool along_last = false;
  std::optional<std::uint32_t> repeated_axis;
  int parallel_runs = 1, sequential_runs = 1;

  int block_threads() const { return parallel_runs * threads; }
  int runs() const { return parallel_runs * sequential_runs; }
  int min_iterations() const;  // elements per lane, at least
};

// The candidates, best predicted first; none if rows are not short and unaligned.
std::vector<MultiRowBlock> multi_row_block(const RowForm& form, const Graph& graph, const Target& target);

// True if every run starts at a multiple of 16 bytes, for runs with row 0 at `start`.
bool starts_aligned(const MultiRowBlock& plan, const IndexExpr& start, DType dtype, const Bounds& bounds);

std::string name_of(const MultiRowBlock& plan);

}  // namespace fusec
