// Many short rows that begin within sectors of memory: as they follow one another there, a block takes a run of them in
// one piece, 16 bytes at a time, into shared memory, in which they lie as values of the compute type. A few lanes take
// a row there, what is stored goes back the same way, and vectors that all rows share are read once a block.
//
//   32 rows of 33     x[1056 * block .. + 1056]  ->  x_tile  ->  4 lanes a row: elements 0 .. 8, 9 .. 17, 18 .. 26, ..
//                     y[1056 * block .. + 1056]  <-  y_tile  <-
//
// So many lanes have an odd number of elements each, all but the last one of them, and a warp takes as many rows, that
// many apart: lanes that go on side by side are in different banks. Of even rows fewer warps share them, as they
// begin at even places anyway. Where that cannot be, a warp takes a row.
//
// Operands that repeat over rows (the bias of attention's scores, masks of keys) make runs those along the rows' last
// axis. What they repeat along most is gone through by the block: one copy of them serves several runs.
//
//   x[b, r, k] + bias[r, k]     bias_tile; for (b = ..) x_tile  ->  y_tile   each b's by threads of its own, or in
//   turns
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
  // Elements in shared memory: of a run's rows, or of one row beside them.
  struct Tile {
    ValueId value = kNone;  // where they come from; kNone: only stored
    DType dtype = DType::kFloat32;
    ScalarType type = ScalarType::kFloat32;
    bool whole = true;       // has an element for each of all rows
    bool broadcast = false;  // has a row for the whole run
    bool per_run = true;     // is it another one for each of a block's runs?
    IndexExpr start = 0;     // the position of the first element of row 0, over axes of rows but those that make runs
    bool aligned = true;     // begins at a multiple of 16 bytes
    int place = 0;           // elements from the beginning of shared memory
    int elements = 0;        // that it takes there; runs side by side have one each, unless they share it
    friend bool operator==(const Tile&, const Tile&) = default;
  };
  static constexpr std::size_t kNoTile = ~std::size_t{0};

  int length = 1;         // of a row
  int lanes = 1;          // that take a row
  int step = 1;           // lane i begins at element i * step
  int stride = 1;         // and goes on by so many
  int iterations = 1;     // elements of a lane, at most
  int rows_per_warp = 1;  // rows of a warp
  int threads = 32;       // of a run
  int rows = 32;          // of a run
  int elements = 0;       // of all tiles
  std::vector<Tile> tiles;
  std::map<ExprId, std::size_t> tile_of;  // of loads
  std::vector<std::size_t> stored;        // by output: its tile; kNoTile where it has an element a row
  // Do runs go along the last axis of rows alone, rather than along all rows? Along the axis of rows on which some
  // tiles do not depend a block has several then, side by side and so many times.
  bool along_last = false;
  std::optional<std::uint32_t> repeated_axis;
  int parallel_runs = 1, sequential_runs = 1;

  int block_threads() const { return parallel_runs * threads; }
  int runs() const { return parallel_runs * sequential_runs; }
  int min_iterations() const;  // elements of a lane, at least
};

// The ways to take such rows, the best first as predicted; none where rows are not such.
std::vector<MultiRowBlock> multi_row_block(const RowForm& form, const Graph& graph, const Target& target);

// Do all runs of elements whose row 0 begins there begin at multiples of 16 bytes?
bool begins_aligned(const MultiRowBlock& plan, const IndexExpr& start, DType dtype, const Bounds& bounds);

std::string name_of(const MultiRowBlock& plan);

}  // namespace fusec
