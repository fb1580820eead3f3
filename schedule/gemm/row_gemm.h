// GEMMs whose rows are reduced: a block computes whole rows, which never reach global memory.
//
//   h[i, j] = r[i, j] + sum_k x[i, k] * w[j, k];   y[i, j] = (h[i, j] - mean_c h[i, c]) * ...
//                                                                                        linear, add, layer norm
//
// The expressions hold each sum several times: at the output's columns, and at the axes over which rows are reduced.
//
// Two kernels exist. If operands are copied as stored, codegen/gemm/gemm's pipeline computes a tile as wide as a row
// (at most 512 columns; at most 256 columns if K exceeds 1024). Otherwise chunks of columns follow one another
// (tiles_of).
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "schedule/gemm/contraction.h"
#include "schedule/gemm/contraction_tiles.h"
#include "schedule/gemm/gemm_form.h"

namespace fusec {

struct RowGemm {
  Kernel kernel;
  Contraction contraction;                          // the sums at the output's columns
  std::vector<std::uint32_t> reduced;               // axes over which rows are reduced; same extents as the columns
  std::map<ExprId, ExprId> accumulator_at_columns;  // for each sum at `reduced`: the same sum of `contraction`
  std::int64_t columns = 0;                         // columns per row
  int rows = 16;                                    // rows per block: 16, 32 or 64
};

// Returns nullopt when rows do not fit a block, or when separate reduction kernels are predicted to be faster.
std::optional<RowGemm> find_row_gemm(const Kernel& kernel);

// A pipelined version with tiles as wide as a row. Returns nullopt when rows are wider than tiles, or when operands
// cannot be copied as stored.
std::optional<GemmForm> find_pipelined_row_gemm(const Graph& graph, const RowGemm& form, const Target& target);

// The block layout of the version that is not pipelined: its rows are in shared memory, followed by the tiles.
struct RowGemmTiles {
  ContractionTiles block;
  int row_stride = 0;  // elements from row to row
  std::int64_t bytes = 0;
};
RowGemmTiles tiles_of(const RowGemm& form);

}  // namespace fusec
