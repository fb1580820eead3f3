// Products one of whose factors is an image of which TMA brings boxes: convolutions that warpgroups multiply without a
// thread that copies (warpgroup_gemm_form.h).
//
//   y[n, o, i, j] = sum_{u, v, c} w[o, u, v, c] * (x[n, c, i + u - 1, j + v - 1] where that is inside)
//
//   A box is 64 channels of 64 pixels of a row (or 32, 16, 8, as many as rows of results are whole ones of), which may
//   begin anywhere: what is outside of the image is 0 to TMA, so that guards which ask for nothing else need not be
//   looked at. The depth goes tap by tap, each in whole tiles of channels; weights lie with their channels last.
//
//   y with channels first   rows o, columns (i, j), batch n: what is stored lies along the columns
//   y with channels last    rows (n, i, j), columns o
//   x with channels first   lines of a box run across the depth, of x with channels last along it
//
// Convolutions of single points are the same without taps: products of the weights and each image's planes.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "schedule/gemm/contraction.h"
#include "schedule/gemm/warpgroup_operand.h"

namespace fusec {

struct ImageLoop {
  std::vector<WarpgroupOperand> left, right;  // as the product's loop has them
  std::int64_t padded_k = 0;                  // with each tap's channels in whole tiles; 0: as the product has it
};

struct ImageContraction {
  Contraction product;  // images in its batch
  std::vector<ImageLoop> loops;
};

std::optional<ImageContraction> find_tma_image_boxes(const Graph& graph, const Kernel& kernel,
                                                     const Contraction& product);

}  // namespace fusec
