// Shared parts of the pipelined GEMM kernels (gemm, convolution), independent of how tiles are filled.
//
//   const TilePlace tile = tile_in_order<8>((int)blockIdx.x, 4, 3);   the block's tile
//   float sum[2][8][4] = {};                                           accumulators of a warp
//   for (int k = 0; k < 16; k += 4) ...                                float32: one tile of K, without tensor cores
#pragma once

#include <span>
#include <string>

#include "codegen/expr/emit_expr.h"
#include "schedule/gemm/gemm_form.h"

namespace fusec {

inline constexpr int kTileGroup = 8;  // rows of tiles that blocks traverse column by column

// A sentence such as "A block makes 128x64, ..." for the kernel's comment.
std::string tiles_comment(const GemmTiles& tiles, bool tensor_cores);

struct BlockPosition {
  std::string tile;   // variable with .row and .column of the tile
  std::string batch;  // flattened batch index with bound axes; "" if there is no batch
};
// Declares the position of a block's tile.
BlockPosition place_block(ExprEmitter& emitter, const Contraction& contraction, const IndexExpr& down,
                          const IndexExpr& across);
void place_warps(KernelWriter& writer, const GemmTiles& tiles);

// The prelude part that multiplies fragments, such as "mma_e4m3_e5m2". left, right: stored dtypes.
std::string mma_name(DType multiplied, DType left, DType right);

// Declares a warp's accumulators, in the mma layout or in the 4-by-8 layout of lanes.
void declare_accumulator(KernelWriter& writer, const GemmTiles& tiles, bool tensor_cores, ScalarType type,
                         const std::string& name);

// The minimum of blocks per multiprocessor for __launch_bounds__; 0 for no limit. `accumulators`: per output element.
// `threads`: of all resident blocks; lower if registers hold more than accumulators and fragments.
int min_blocks_per_multiprocessor(const GemmTiles& tiles, bool tensor_cores, std::size_t accumulators,
                                  int threads = 512);

// An operand's tile as lanes read it, and a product of two.
struct LaneTile {
  bool left, k_major;
  int units;
  std::string fragments, at;
};
struct LaneTerm {
  std::string accumulator, left, right;  // left, right: names of the operands' fragments
};
void multiply_in_lanes(KernelWriter& writer, const GemmTiles& tiles, std::span<const LaneTile> operands,
                       std::span<const LaneTerm> terms);

}  // namespace fusec
