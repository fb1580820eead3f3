// Products whose depth several blocks share (schedule/gemm/split_k.h): what each leaves of its tile, and the kernel
// that adds up what they have left and does what stands behind the product.
//
//   partial[share][sum][batch][16 rows][8 columns]      of each 8 columns, 4 sums of each lane of the warp that made
//                                                       them: whole lines of 512 bytes, written and read as they lie
//                                                       in registers, whatever the instruction spreads them like
//   partial[part][sum][streamed tile][16 rows][8 columns]  likewise where the last tiles alone are shared out
//                                                       (schedule/gemm/stream_k.h)
#pragma once

#include <cstdint>
#include <string>

#include "codegen/expr/emit_expr.h"
#include "codegen/expr/kernel_source.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/gemm/stream_k.h"

namespace fusec {

struct SplitKPartials {
  int split_k = 1;           // or parts of a streamed tile, at most
  int accumulators = 1;      // of each element
  IndexExpr batches = 1;     // or streamed tiles
  IndexExpr pieces, eights;  // of 16 rows, of 8 columns: those of whole tiles

  SplitKPartials(int of_depth, const Contraction& product, const ExprPool& pool, int tile_rows, int tile_columns);
  // Of streamed tiles, where a warp's row and column are those in the tile.
  SplitKPartials(const StreamK& stream_k, const Contraction& product, const GemmTiles& tiles);
  IndexExpr floats_per_split() const { return batches * pieces * eights * (128 * accumulators); }
};

// A block's place among the shares: C text.
struct SplitPlace {
  std::string split, batch, row, column;  // batch: "" where there is none; row, column: of a warp's first
};

// The memory of the shares, as a parameter of the kernel that is written.
std::string declare_partial(KernelWriter& writer, const SplitKPartials& split_k, ScalarType accumulators);
// Leaves a warp's sums: `pieces` of 16 rows by `columns`, each of so many of the registers' first dimension: one of
// fragments, 4 of lanes, 0 where all registers are of one piece.
void store_partial(ExprEmitter& emitter, const SplitKPartials& split_k, const std::string& partial,
                   const SplitPlace& place, int which, const std::string& sum, ScalarType type, int pieces, int columns,
                   int rows_of_piece);

// The first step along the depth of a share, and of the one behind it: C text. `together`: steps that are one share's.
struct SplitSteps {
  std::string first, end;
};
SplitSteps split_steps(const ExprEmitter& emitter, const std::string& split, const IndexExpr& steps, int together,
                       int split_k);

// The prelude's name of the streams: C text.
std::string name_of(const StreamK& stream_k, KernelWriter& writer);

// Adds up the shares and does what stands behind the product. `form`: with the tiles of the kernel before.
KernelSource emit_split_k_reduction(const Kernel& kernel, const Contraction& product, const GemmForm& form,
                                    const SplitKPartials& split_k, const Graph& graph);

}  // namespace fusec
