// Split-K: for GEMMs with few tiles and a large K, several blocks compute one tile. Each sums a split of K and stores
// its partial sums. A second kernel adds them in the order of the splits and runs the epilogue.
//
//   64 x 64 with K = 16384      one block of 64x64     ->   16 blocks with 1024 of K each
//
// This file chooses the number of splits for gemm_form and warpgroup_gemm_form.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "schedule/gemm/contraction.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/target/target.h"

namespace fusec {

// True for one loop over a large K, with so few rows and columns (also at their upper bounds) that 64x64 tiles fill at
// most a quarter of the multiprocessors.
bool has_few_tiles_and_large_k(const ExprPool& pool, const Contraction& contraction, const Target& target);
// True if the form allows split-K: few tiles and large K, no groups, no interleaved columns.
bool can_split_k(const ExprPool& pool, const Contraction& contraction, const GemmForm& form, const Target& target);

// Steps along K that must be in the same split: those of a block with constant scales. If `block` is 0, any step may
// begin a split.
inline int steps_per_scale_block(std::int64_t block, int k) {
  return block == 0 ? 1 : static_cast<int>(std::max<std::int64_t>(1, block / k));
}

// The numbers of splits to try for `tiles` tiles of `steps` steps, `unsplit_steps` of which must stay together. Empty
// if there are enough tiles or too few steps.
std::vector<int> split_k_candidates(double tiles, double steps, int unsplit_steps, const Target& target);
// Steps of the longest split.
double steps_per_split(double steps, int unsplit_steps, int split_k);

// Adds to `cycles` the cost of the partial sums and of the second kernel, times a margin for errors of the model.
double split_k_cycles(double cycles, double accumulators, int split_k, const Target& target);

}  // namespace fusec
