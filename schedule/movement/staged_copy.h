// Kernels some of whose loads run along another axis than what is stored, or whose rows are short or odd: a block
// copies what its tile of points reads to shared memory, as the rows lie in memory, and stores the results from there
// along memory.
//
//   y[j, i] = x[i, j]    a block's tile: rows i0 .. i0 + 63 of x, 64 columns each, as vectors of 16 bytes
//                        a thread's:     8 neighbours i of columns j and j + 1, turned round in registers, stored as
//                                        vectors of two rows of y
//
// Rows keep their distance modulo 16 bytes in shared memory, so that vectors stay aligned wherever rows begin. Padding
// between rows avoids bank conflicts (schedule/movement/staged_copy_padding); nothing is swizzled.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"
#include "schedule/target/target.h"

namespace fusec {

// An axis of the plan's kernel of which a block may have several elements.
struct TileAxis {
  std::uint32_t axis;
  int extent;
};

// A tensor's part of the tile in memory: rows, each of them contiguous. Axes are given by their number in the tile.
struct TileRows {
  std::vector<std::size_t> run;       // axes that a row goes along, the fastest first
  std::vector<std::size_t> across;    // the others that the tensor has several elements of, the fastest first
  std::vector<std::int64_t> strides;  // elements, of every axis, at hints; 0 where the tensor does not depend on it
  std::vector<IndexExpr> steps;       // the same as expressions of symbols
  std::vector<bool> backwards;        // memory goes the other way
  int aligned = 1;                    // bytes, up to a sector, that all rows begin at multiples of
};

struct StagedOperand {
  ExprId load = kNoExpr;  // of the plan's kernel
  int bits = 8;           // of an element
  TileRows rows;
  bool in_vectors = true;  // copied 16 bytes at a time; else element by element, at any index and under guards
  bool indexed = false;  // vectors of a gather: each row begins at its own multiple of 16 bytes; loads may have guards
  std::vector<int> pitches;  // by tile axis: bytes of shared memory from one element to the next
  int start = 0;             // in shared memory

  // Half bytes that are copied one by one take a byte each.
  int element_bytes() const { return bits < 8 ? 1 : bits / 8; }
  // Whether a symbol decides the pitch of the axis modulo 16 bytes.
  bool pitch_varies(std::size_t axis) const {
    return in_vectors && !indexed && pitches[axis] != 0 && !rows.steps[axis].is_constant() && varies[axis];
  }
  std::vector<bool> varies;  // the step is no multiple of 16 bytes for all symbols
};

// A thread's number, or an item's, has these digits, the fastest first: `count` values of a tile axis, `step` apart.
struct ItemDigit {
  std::size_t axis;
  int count, step;
};

struct StagedCopy {
  Kernel kernel;  // whose last axis is the lane where width > 1
  std::vector<TileAxis> axes;
  // Vectors: a thread stores `width` neighbours of the last axis at a time, for each of `planes` neighbours of the
  // axis `along`, of which it reads words of shared memory. Words (width 0): it stores a word of a run of the result at
  // a time, which is counted from the sector that the run begins in.
  int width = 0, planes = 1, store_lanes = 0;  // store_lanes: threads that store a run's words together; 0: any
  std::size_t along = 0;
  std::vector<ItemDigit> items;
  TileRows stored;
  std::vector<StagedOperand> operands;
  int threads = 256, bytes = 0;  // bytes: of shared memory
  double sectors = 0;            // of device memory, for a point
  double conflicts = 0;          // of shared-memory banks, for an access
  double time = 0;               // for a point, in sectors (schedule/movement/access_samples.h)
  bool few_points = false;       // in a block's tile
};

// Elements of a row, from its first to its last; how many rows there are; bytes from a multiple of `from` on that hold
// any of them.
std::int64_t run_elements(const TileRows& rows, const std::vector<TileAxis>& axes);
std::int64_t row_count(const TileRows& rows, const std::vector<TileAxis>& axes);
int row_bytes(const TileRows& rows, const std::vector<TileAxis>& axes, int element_bits, int from);
// Words of 4 bytes, or elements that are larger, that a row of the result is stored as, from a sector's begin on.
int words_of_row(const TileRows& rows, const std::vector<TileAxis>& axes, int element_bits);
std::int64_t ceil_quotient(std::int64_t a, std::int64_t b);

// How threads take the pieces of rows: so many neighbours each row, several rows at a time; 0: one piece after the
// other, whatever its row.
struct RowThreads {
  int lanes = 0;
  double busy = 1;  // of the threads
};
RowThreads row_threads(std::int64_t rows, int pieces, int threads, int wanted_lanes = 0);

// Elements of a word of 4 bytes, at least one.
int elements_of_word(int element_bits);

// Whether some load runs along another axis than the results, so that direct accesses would be scattered.
bool has_crossing_load(const Kernel& kernel, const Graph& graph);

// Plans that store vectors along the last axis, for loads that cross it, and ones that store words of runs along
// several axes. Nothing where there is no such plan.
std::optional<StagedCopy> plan_staged_vectors(const Kernel& kernel, const Graph& graph, const Target& target);
std::optional<StagedCopy> plan_staged_words(const Kernel& kernel, const Graph& graph, const Target& target);

}  // namespace fusec
