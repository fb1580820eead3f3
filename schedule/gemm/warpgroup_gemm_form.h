// A product that sm_90a computes by warpgroups (wgmma) from tiles that TMA copies, and how it is cut into them. A
// factor of a gemm (gemm_form.h) is one of these where its position is linear in the rows (or columns), the depth and
// the batch: what TMA calls a tensor.
//
//   x[b, m, k]     innermost k, then m, then b: a box of 64 along k and 128 along m is a tile
//
// What is computed of narrower elements (gemm_operand.h) is no such tensor: threads make its tiles.
//
// Rows may come in groups with a matrix each (grouped_gemm.h): a tile has rows of one of them, and the matrix' number
// is a dimension of the right factors.
//
// Rows that are no steps apart, or of an image with taps that may be outside (convolution_form.h), are no tensor to
// TMA: threads copy them. Where rows of results are whole eights, TMA takes boxes of the image (tma_image_boxes.h).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "schedule/gemm/convolution_form.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/gemm/warpgroup_tiles.h"

namespace fusec {

// Does the target have wgmma, and TMA that copies into the blocks of a cluster?
bool has_warpgroups(const Target& target);

// A product of one launch.
struct WarpgroupCandidate {
  const Kernel* kernel;
  const Contraction* product;
  const GemmForm* form;
  const ConvolutionForm* convolution = nullptr;  // of which the form is that of a product
  const Graph* graph = nullptr;                  // of a product alone, whose image may be taken in boxes
};

// Several products are one kernel's: of these, a form each.
struct WarpgroupGemms {
  std::vector<WarpgroupGemmForm> forms;
  double cycles = 0;  // predicted
};

// The ways to cut them into tiles, the best first; none where TMA cannot take a factor or the target has no wgmma.
std::vector<WarpgroupGemms> rank_warpgroup_gemms(std::span<const WarpgroupCandidate> products, const Target& target);
// Of a convolution; none as well where most of a tile would be empty.
std::vector<WarpgroupGemms> rank_warpgroup_convolutions(const Graph& graph, const Kernel& kernel,
                                                        const Contraction& product, const ConvolutionForm& form,
                                                        const Target& target);
// Likewise of one that has no form for warps: sums over several images.
std::vector<WarpgroupGemms> rank_warpgroup_images(const Graph& graph, const Kernel& kernel, const Contraction& product,
                                                  const Target& target);
// The best way of one; nothing where the form at hand is predicted to be faster.
std::optional<WarpgroupGemms> best_warpgroup_gemm(const WarpgroupCandidate& product, const Target& target);
std::optional<WarpgroupGemms> best_warpgroup_convolution(const Graph& graph, const Kernel& kernel,
                                                         const Contraction& product, const ConvolutionForm& form,
                                                         const Target& target);
std::optional<WarpgroupGemms> best_warpgroup_images(const Graph& graph, const Kernel& kernel,
                                                    const Contraction& product, const Target& target);
// The best way; none as well where the forms at hand are predicted to be faster.
std::vector<WarpgroupGemmForm> find_warpgroup_gemms(std::span<const WarpgroupCandidate> products, const Target& target);

}  // namespace fusec
