// Emits GEMMs for sm_90a that warpgroups multiply with wgmma (schedule/gemm/warpgroup_gemm_form.h). The kernel is
// persistent: each block makes tile after tile.
//
//   warp 0            waits until a stage is empty and has TMA copy the next tiles of both operands into it; of a tile
//                     that both blocks of a cluster need, each block copies half, for both (multicast)
//   warps 1 to 3      load the scales of a stage's rows and columns, if scales differ along K
//   two warpgroups    multiply a stage, 64 rows each, then release it to the copying warps of both blocks; they run the
//                     epilogue of a tile while the next tile is copied. Each warp has TMA store its 16 rows from
//                     swizzled lines in shared memory if the output's rows are aligned, else each lane stores 16 bytes
//
// Other operands are loaded differently:
// - boxes of an image: each lane of warp 0 has TMA copy boxes (gemm_warpgroup_image_boxes.cpp)
// - rows that are gathered or strided, and images without boxes: warps 0 to 3 copy them
// - transformed operands (such as dequantized ones): warps 0 to 3 compute the tiles
//
// In a grouped GEMM a tile has rows of one group only, and of a group's last tile only its own rows are stored.
//
// In a grouped GEMM the copying and the multiplying warps each find a tile's group by themselves, so they exchange
// nothing. A transformed operand is multiplied with tiles of 256 rows if there are that many, so that each computed
// tile is used twice.
#pragma once

#include <span>

#include "codegen/expr/kernel_source.h"
#include "schedule/gemm/warpgroup_gemm_form.h"

namespace fusec {

struct WarpgroupPart {
  const Kernel& kernel;
  const Contraction& contraction;
  const WarpgroupGemmForm& form;
};

// Emits one GEMM, or several that find_warpgroup_gemms() found together: all tiles of the first, then of the next.
KernelSource gemm_warpgroup(std::span<const WarpgroupPart> parts, const Graph& graph, const Target& target);

}  // namespace fusec
