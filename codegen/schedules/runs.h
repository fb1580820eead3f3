// Pointwise kernels that only move elements: pads, rolls, pieces side by side. Their rows are pieces that lie in one
// line of a tensor, or are constant (codegen/schedules/row_pieces), and a block has some 16 bytes of a few rows.
//
//   - Its threads find, one for each row, where the row's pieces lie, and put that in a table in shared memory; where
//     rows lie evenly, they need none.
//   - What lies between the first and the last place of a tensor is copied there as well.
//   - 16 bytes of one piece are taken from there wherever they begin; where pieces meet, they are put together of as
//   many
//     as there are, by as few of the block's warps as it takes. Then all is stored, by neighbouring threads side by side.
//
//   y[i, j] = x[i, reflected(j - 3)], rows of 118 float16:   |3 2 1 0 1 2 3 4|5 .. 12|13 .. 20| ...
//                                                             two pieces      one     one
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/kernel.h"
#include "analysis/target.h"
#include "codegen/kernel_source.h"
#include "codegen/schedules/row_pieces.h"
#include "ir/graph.h"

namespace fusec {

struct RunPlan {
  struct Tensor {
    std::uint32_t source = 0;
    std::vector<ExprId> loads;
    int most = 0;            // vectors of 16 bytes of a block; more are not copied
    std::int64_t start = 0;  // in shared memory, in bytes: of the 16 bytes before its vectors
    std::size_t main = 0;    // the longest of the pieces that read it
  };
  RowPieces rows;
  std::vector<Tensor> tensors;
  std::vector<ExprId> constants;
  int width = 1;  // elements of 16 bytes
  int threads = 128;
  int turns = 4;      // vectors of a thread, a block's threads apart
  int most_rows = 0;  // of the table
  // Rows lie evenly, one behind the other: no table says where.
  bool even = false;
  // What lies so many elements or more beside the line of a block's middle row is not copied, but read where it lies.
  // 0: there is no such.
  std::int64_t far = 0;
  std::int64_t ends_start = 0, counter_start = 0, list_start = 0, made_start = 0, table_start = 0;  // in shared memory, in bytes
  double sectors = 0, instructions = 0;  // for a point, of loads alone; and of all

  std::int64_t block() const { return std::int64_t{threads} * turns * width; }  // points
  std::int64_t ends_bytes() const { return std::int64_t{2} * 4 * (threads / 32); }
  // Words of a row in the table, one for each piece that is no constant: rows' first ones lie in unlike banks.
  int row_words() const { return static_cast<int>(std::ranges::count(rows.pieces, false, &RowPiece::constant)) | 1; }
  int table_words() const { return even ? 0 : most_rows * row_words(); }
  // Of the table there are two: of shared memory's places, and of tensors'.
  std::int64_t shared_bytes() const { return table_start + std::int64_t{2} * 4 * table_words(); }
};

// Nothing where it computes anything, or where few of the results are runs.
std::optional<RunPlan> plan_runs(const Kernel& kernel, const Graph& graph, const Target& target);

KernelSource emit_runs(const Graph& graph, const Target& target, const RunPlan& plan);

}  // namespace fusec
