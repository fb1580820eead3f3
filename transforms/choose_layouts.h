// Stores values between convolutions channels-last (NHWC) where the cost model predicts a gain: an implicit GEMM can
// then copy 16 bytes of channels at a time. The choice covers the whole graph and adds no launch
// (transforms/apply_layouts.h makes the permutations part of existing groups).
//
//   x -> conv -> relu -> conv -> add -> pool -> linear
//        The model's inputs and outputs and the operand of linear keep their layout. Values in between become
//        channels-last. Convolution weights become channels-last in M_prepare, once for each set of weights.
//
// Models that already permute images to channels-last around each convolution get only their weights laid out.
//
// A second search lays out weights whose image keeps its layout. It helps three kernel forms: warpgroup products with
// boxes of the image (schedule/gemm/tma_image_boxes.h), grouped implicit GEMM, which loads weights in words
// (schedule/convolution/grouped_implicit_gemm.h), and transposed convolutions, whose weights are strided otherwise.
//
// Values are tied if one group reads or writes both; tied values are decided together. First all candidates are laid
// out. A group that would need more kernels or a weaker form, or would be slower by itself, gives up its values. The
// remaining tied values must make their groups faster in total, or they keep their layout.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transforms/apply_layouts.h"

namespace fusec {

class TrialMemory;

// Returns nothing if no value changes its layout. `trials` gives the target, the forms of kernels and
// the deadline.
std::optional<PlanWithLayouts> choose_layouts(const Graph& graph, const FusionPlan& plan, const TrialMemory& trials);

// For --explain: one sentence for each result of the nodes, and each constant they read, that changed its layout:
//
//   "relu" lies in memory with its channels last, as float16[8, 56, 56, 64]
std::vector<std::string> layout_sentences(const Graph& graph, const PlanWithLayouts& laid,
                                          std::span<const NodeId> nodes);

// Throws InternalError unless each group of `laid` has the same nodes as in `plan`, apart from added permutes, and all
// added groups are prepared.
void verify_laid_out(const Graph& graph, const FusionPlan& plan, const PlanWithLayouts& laid);

}  // namespace fusec
