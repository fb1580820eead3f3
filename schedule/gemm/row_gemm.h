// Products whose rows are reduced as wholes: a block makes whole rows of the product, which never reach memory.
//
//   h[i, j] = r[i, j] + sum_k x[i, k] * w[j, k];   y[i, j] = (h[i, j] - mean_c h[i, c]) * ...     linear, add, layer
//   norm
//
// The sums stand in the expressions several times: at the output's columns, and at the axes that rows are reduced over.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "schedule/gemm/contraction.h"
#include "schedule/gemm/gemm_form.h"

namespace fusec {

struct RowGemm {
  Kernel kernel;
  Contraction product;                 // the sums at the output's columns
  std::vector<std::uint32_t> reduced;  // the axes that rows are reduced over; they have the columns' extents
  std::map<ExprId, ExprId> twins;      // the sums at `reduced`: which of the product's each is
  std::int64_t columns = 0;            // of a row
  int rows = 16;                       // of a block: 16, 32 or 64
};

// Nothing where rows do not fit a block, or where a kernel of their own for the reductions is predicted to be faster.
std::optional<RowGemm> find_row_gemm(const Kernel& kernel);

// The same in a pipeline, a block's tile as wide as a row; nothing where rows are wider than tiles are, or factors are
// not copied as they lie.
std::optional<GemmForm> find_pipelined_row_gemm(const Graph& graph, const RowGemm& form, const Target& target);

// How a block is laid out otherwise; sizes in elements. Its rows lie in shared memory, and the tiles behind them.
struct RowGemmTiles {
  int threads = 256;
  int chunk = 0;       // columns that are multiplied at a time
  int k = 0;           // of a step along the summed axes
  int row_stride = 0;  // of the rows
  std::int64_t bytes = 0;
};
RowGemmTiles tiles_of(const RowGemm& form);

}  // namespace fusec
