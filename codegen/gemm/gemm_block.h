// What a block of a pipelined product declares and does, however its tiles are filled (gemm, convolution).
//
//   const TilePlace tile = tile_in_order<8>((int)blockIdx.x, 4, 3);   where it stands among the product's tiles
//   float sum[2][8][4] = {};                                           its warps' sums
//   for (int k = 0; k < 16; k += 4) ...                                float32: a step along the depth, in lanes
#pragma once

#include <span>
#include <string>

#include "codegen/expr/emit_expr.h"
#include "schedule/gemm/gemm_form.h"

namespace fusec {

inline constexpr int kTileGroup = 8;  // rows of tiles that blocks go through column by column

// "A block makes 128x64, ...": for the kernel's comment.
std::string tiles_comment(const GemmTiles& tiles, bool tensor_cores);

struct BlockPlace {
  std::string tile;   // .row and .column of so many down and across
  std::string batch;  // flattened, its axes bound; "" where there is none
};
// `tile`: its number among them, C text.
BlockPlace place_block(ExprEmitter& emitter, const Contraction& product, const IndexExpr& down, const IndexExpr& across,
                       const std::string& tile = "(int)blockIdx.x");
void place_warps(KernelWriter& writer, const GemmTiles& tiles);

// The part of the prelude that multiplies fragments of the dtype, the factors stored as these ("mma_e4m3_e5m2").
std::string mma_name(DType multiplied, DType left, DType right);

// A warp's sums, as mma spreads them or as lanes that are 4 by 8 have them.
void declare_accumulator(KernelWriter& writer, const GemmTiles& tiles, bool tensor_cores, ScalarType type,
                         const std::string& name);

// Of a multiprocessor, to limit registers by; 0 for no limit. `sums`: of each element of the space; `threads`: of all
// blocks, fewer where more than the sums and the factors' fragments is in registers.
int min_blocks_per_multiprocessor(const GemmTiles& tiles, bool tensor_cores, std::size_t accumulators,
                                  int threads = 512);

// A factor's tile, as lanes read it, and one product of two of them.
struct LaneTile {
  bool left, k_major;
  int units;
  std::string fragments, at;
};
struct LaneTerm {
  std::string sum, left, right;  // factors' fragments
};
void multiply_in_lanes(KernelWriter& writer, const GemmTiles& tiles, std::span<const LaneTile> factors,
                       std::span<const LaneTerm> terms);

}  // namespace fusec
