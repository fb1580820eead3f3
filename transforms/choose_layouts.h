// Values between convolutions lie with their channels last in memory where that is predicted to pay, so that products
// copy 16 bytes of channels at a time: chosen for the whole graph, without a launch more (transforms/lay_out).
//
//   x -> conv -> relu -> conv -> add -> pool -> linear
//        inputs, outputs and what linear reads stay as they are; all between has its channels last, and the weights
//        that convolutions read lie likewise, once for each set of them (M_prepare)
//
// Models whose images have their channels last already, permuted before each convolution and behind it, get their
// weights laid out in the same way.
//
// Where an image stays as it is, its weights alone may be laid out: warpgroups multiply them with boxes of the image
// (schedule/gemm/tma_image_boxes.h), groups' weights are loaded in words
// (schedule/convolution/grouped_implicit_gemm.h), and those of transposed convolutions, which lie strided, are copied
// in pieces.
//
// Values that one group ties to another (it reads one and makes the other) are looked at together. First all of them
// are laid out; where a group would then be more kernels, of a weaker form, or slower on its own, its values stay as
// they are; what is left must make its groups faster together, or nothing is changed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schedule/target/target.h"
#include "transforms/lay_out.h"

namespace fusec {

// Nothing where all stays as it is.
std::optional<LaidOut> choose_layouts(const Graph& graph, const FusionPlan& plan, const Target& target);

// For --explain, one sentence for each of the nodes' results, and of the constants they read, that are laid out:
//
//   "relu" lies in memory with its channels last, as float16[8, 56, 56, 64]
std::vector<std::string> layout_sentences(const Graph& graph, const LaidOut& laid, std::span<const NodeId> nodes);

// Throws InternalError where the plan laid out computes something else than the plan: other nodes, permutations aside,
// or another group for one of them.
void verify_laid_out(const Graph& graph, const FusionPlan& plan, const LaidOut& laid);

}  // namespace fusec
