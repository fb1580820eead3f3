// Convolutions by warpgroups where TMA copies boxes of the image, so that no thread copies (warpgroup_gemm_form.h).
//
//   y[n, o, i, j] = sum_{u, v, c} w[o, u, v, c] * (x[n, c, i + u - 1, j + v - 1] if inside)
//
// A box has 64 channels of 64 pixels of a row, or of 32, 16 or 8 if output rows are multiples of those. TMA fills
// elements outside of the image with 0, so padding needs no guards. K is ordered by tap, with each tap's channels
// padded to whole tiles. The weights must be contiguous along the channels.
//
//   channels-first output   rows o, columns (i, j), batch n: output columns are contiguous
//   channels-last output    rows (n, i, j), columns o
//   channels-first x        lines of a box run across K; of a channels-last x along K
//
// Pointwise convolutions have no taps: they multiply the weights by each image's planes.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "schedule/gemm/contraction.h"
#include "schedule/gemm/warpgroup_operand.h"

namespace fusec {

struct ImageLoop {
  std::vector<WarpgroupOperand> left, right;  // in the order of the contraction's loop
  std::int64_t padded_k = 0;                  // K with each tap's channels padded to whole tiles; 0: K is not padded
};

struct ImageContraction {
  Contraction contraction;  // with images in its batch
  std::vector<ImageLoop> loops;
};

std::optional<ImageContraction> find_tma_image_boxes(const Graph& graph, const Kernel& kernel,
                                                     const Contraction& contraction);

}  // namespace fusec
