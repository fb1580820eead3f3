// Products whose depth several blocks share (analysis/depth_shares.h): what each leaves of its tile, and the kernel
// that adds up what they have left and does what stands behind the product.
//
//   partial[share][sum][batch][16 rows][8 columns]      of each 8 columns, 4 sums of each lane of the warp that made
//                                                       them: whole lines of 512 bytes, written and read as they lie
//                                                       in registers, whatever the instruction spreads them like
//   partial[part][sum][streamed tile][16 rows][8 columns]  likewise where the last tiles alone are shared out
//                                                       (analysis/tile_streams.h)
#pragma once

#include <cstdint>
#include <string>

#include "analysis/gemm_form.h"
#include "analysis/tile_streams.h"
#include "codegen/emit_expr.h"
#include "codegen/kernel_source.h"

namespace fusec {

struct GemmShares {
  int shares = 1;            // or parts of a streamed tile, at most
  int sums = 1;              // of each element
  IndexExpr batches = 1;     // or streamed tiles
  IndexExpr pieces, eights;  // of 16 rows, of 8 columns: those of whole tiles

  GemmShares(int of_depth, const Product& product, const ExprPool& pool, int tile_rows, int tile_columns);
  // Of streamed tiles, where a warp's row and column are those in the tile.
  GemmShares(const TileStreams& streams, const Product& product, const GemmTiles& tiles);
  IndexExpr floats_of_share() const { return batches * pieces * eights * (128 * sums); }
};

// A block's place among the shares: C text.
struct SharePlace {
  std::string share, batch, row, column;  // batch: "" where there is none; row, column: of a warp's first
};

// The memory of the shares, as a parameter of the kernel that is written.
std::string declare_partial(KernelWriter& writer, const GemmShares& shares, ScalarType sums);
// Leaves a warp's sums: `pieces` of 16 rows by `columns`, each of so many of the registers' first dimension: one of
// fragments, 4 of lanes, 0 where all registers are of one piece.
void leave_share(ExprEmitter& emitter, const GemmShares& shares, const std::string& partial, const SharePlace& place,
                 int which, const std::string& sum, ScalarType type, int pieces, int columns, int rows_of_piece);

// The first step along the depth of a share, and of the one behind it: C text. `together`: steps that are one share's.
struct ShareSteps {
  std::string first, end;
};
ShareSteps share_steps(const ExprEmitter& emitter, const std::string& share, const IndexExpr& steps, int together,
                       int shares);

// The prelude's name of the streams: C text.
std::string name_of(const TileStreams& streams, KernelWriter& writer);

// Adds up the shares and does what stands behind the product. `form`: with the tiles of the kernel before.
KernelSource add_gemm_shares(const Kernel& kernel, const Product& product, const GemmForm& form,
                             const GemmShares& shares, const Graph& graph);

}  // namespace fusec
