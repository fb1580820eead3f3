// Decides whether warpgroups (wgmma, sm_90a) can compute a GEMM, and ranks its tilings. TMA copies the tiles, so an
// operand must be what TMA calls a tensor: its position is linear in the rows (or columns), in K and in the batch.
//
//   x[b, m, k]     dimensions, innermost first: k, m, b; a box of 64 k by 128 m is a tile
//
// Other operands are filled by threads, or use other boxes:
// - operands computed from narrower elements (gemm_operand.h): threads compute the tiles
// - rows without a constant stride, and rows of an image with padding (convolution_form.h): threads copy them
// - images whose output rows are multiples of eight pixels: TMA copies boxes of the image (tma_image_boxes.h)
//
// In a grouped GEMM (grouped_gemm.h) a tile has rows of one group only, and the group's matrix is a dimension of the
// right operands.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "schedule/gemm/convolution_form.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/gemm/warpgroup_tiles.h"

namespace fusec {

// True if the target has wgmma and TMA multicast to the blocks of a cluster.
bool has_warpgroups(const Target& target);

// One GEMM of a launch.
struct WarpgroupCandidate {
  const Kernel* kernel;
  const Contraction* contraction;
  const GemmForm* form;
  const ConvolutionForm* convolution = nullptr;  // set if `form` is the convolution's
  const Graph* graph = nullptr;                  // for a single GEMM; allows boxes of its image
};

// The forms of all GEMMs of one kernel.
struct WarpgroupGemms {
  std::vector<WarpgroupGemmForm> forms;
  double cycles = 0;  // predicted cycles of the kernel
};

// All tilings of the GEMMs, best first. Empty when TMA cannot take an operand or the target has no wgmma.
std::vector<WarpgroupGemms> rank_warpgroup_gemms(std::span<const WarpgroupCandidate> contractions,
                                                 const Target& target);
// All tilings of a convolution, best first. Also empty when most of a tile would be padding.
std::vector<WarpgroupGemms> rank_warpgroup_convolutions(const Graph& graph, const Kernel& kernel,
                                                        const Contraction& contraction, const ConvolutionForm& form,
                                                        const Target& target);
// All tilings of a contraction of images without a ConvolutionForm, such as sums over several images, best first.
std::vector<WarpgroupGemms> rank_warpgroup_images(const Graph& graph, const Kernel& kernel,
                                                  const Contraction& contraction, const Target& target);
// The best tiling of several GEMMs in one kernel. Empty when the given forms are predicted to be faster.
std::vector<WarpgroupGemmForm> find_warpgroup_gemms(std::span<const WarpgroupCandidate> contractions,
                                                    const Target& target);

}  // namespace fusec
