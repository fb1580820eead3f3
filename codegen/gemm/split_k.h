// Emits the partial sums of split-K (schedule/gemm/split_k.h), and the kernel that adds them and runs the
// epilogue.
//
//   partial[split][accumulator][batch][16 rows][8 columns]
//
// Each 16x8 block has the four accumulators of each lane of a warp in register order: 512 contiguous bytes, whatever
// the layout of the instruction.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/expr/emit_expr.h"
#include "codegen/expr/kernel_source.h"
#include "schedule/gemm/gemm_form.h"

namespace fusec {

struct SplitKPartials {
  int split_k = 1;
  int accumulators = 1;  // per output element
  IndexExpr batches = 1;
  IndexExpr m16_tiles, n8_tiles;  // pieces of 16 rows and groups of eight columns, in whole tiles

  SplitKPartials(int splits, const Contraction& contraction, const ExprPool& pool, int tile_rows, int tile_columns);
  IndexExpr floats_per_split() const { return batches * m16_tiles * n8_tiles * (128 * accumulators); }
};

// A block's position in the partial sums, as C text.
struct SplitPosition {
  std::string split, batch, row, column;  // batch: "" if there is none; row, column: the first of a warp
};

// Declares the workspace of the partial sums as a kernel parameter.
std::string declare_partial(KernelWriter& writer, const SplitKPartials& split_k, ScalarType accumulators);
// Stores a warp's accumulators: `m16_tiles` times 16 rows by `columns`. `rows_per_m16_tile`: how many elements of the
// registers' first dimension a piece has: 1 in the mma layout, 4 without tensor cores, 0 if all registers belong to one
// piece.
void store_partial(ExprEmitter& emitter, const SplitKPartials& split_k, const std::string& partial,
                   const SplitPosition& place, int which, const std::string& sum, ScalarType type, int m16_tiles,
                   int columns, int rows_per_m16_tile);

// The first step of a split along K, and the first of the next split, as C text. `unsplit_steps`: steps that are never
// split.
struct SplitSteps {
  std::string first, end;
};
SplitSteps split_steps(const ExprEmitter& emitter, const std::string& split, const IndexExpr& steps, int unsplit_steps,
                       int split_k);

// Emits the kernel that adds the partial sums and runs the epilogue. `form`: with the tiles of the first kernel.
KernelSource emit_split_k_reduction(const Kernel& kernel, const Contraction& contraction, const GemmForm& form,
                                    const SplitKPartials& split_k, const Graph& graph);

}  // namespace fusec
