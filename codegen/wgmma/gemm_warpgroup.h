// Matrix products by warpgroups, for sm_90a (schedule/gemm/warpgroup_gemm_form.h): blocks stay and make tile after
// tile.
//
//   warp 0            waits until a stage is empty and has TMA copy the next tiles of both factors into it; what both
//                     blocks of a cluster multiply, each copies half of, for both
//   warps 1 to 3      bring the scales of a stage's rows and columns, where they differ along the depth
//   two warpgroups    multiply what is there (wgmma), 64 rows each, tell both blocks' copiers that a stage is empty,
//                     and finish a tile while copies of the next one are on their way: each warp has TMA store its 16
//                     rows from swizzled lines in shared memory, where outputs lie in aligned rows, else 16 bytes a
//                     lane
//
// Of an image in boxes each lane of warp 0 has TMA copy boxes (gemm_warpgroup_image_boxes.cpp).
//
// Rows that are looked up, strided, or an image's (convolutions) are copied by all of warps 0 to 3, which make the
// tiles of factors that are computed, too (codes times scales). Where rows come in groups with a matrix each, a tile
// has rows of one group, and lanes store those of its last tile that are its own.
#pragma once

#include <span>

#include "codegen/expr/kernel_source.h"
#include "schedule/gemm/warpgroup_gemm_form.h"

namespace fusec {

struct WarpgroupPart {
  const Kernel& kernel;
  const Contraction& product;
  const WarpgroupGemmForm& form;
};

// One product, or several that find_warpgroup_gemms found together: first all tiles of the first, then the next one's.
KernelSource gemm_warpgroup(std::span<const WarpgroupPart> parts, const Graph& graph, const Target& target);

}  // namespace fusec
