// Where a product has few tiles and a long depth, several blocks make one tile: each sums up a share of the depth and
// leaves its sums in memory, and a second kernel adds them up, in the order of the shares, ahead of what stands behind
// the product.
//
//   64 x 64 of 16384      one block of 64x64     ->   16 blocks that have 1024 of the depth each
//
// Into how many shares the depth goes is decided here, for the ways of products (gemm_form, warpgroup_gemm_form).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "schedule/gemm/contraction.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/target/target.h"

namespace fusec {

// Sizes across the depth that are bounded, one sum over the depth at a time; tiles of 64x64 for a quarter of the
// multiprocessors at most.
bool has_few_tiles_and_large_k(const ExprPool& pool, const Contraction& product, const Target& target);
// The same, of rows that have one matrix, and of columns that are no pairs.
bool can_split_k(const ExprPool& pool, const Contraction& product, const GemmForm& form, const Target& target);

// Steps along the depth that are one share's: those of a block for which scales are the same (0: all of the depth, and
// any step may be the first of a share).
inline int steps_per_scale_block(std::int64_t block, int k) {
  return block == 0 ? 1 : static_cast<int>(std::max<std::int64_t>(1, block / k));
}

// Numbers of shares to try, of so many tiles with so many steps along the depth each, of which so many are one share's;
// none where there are tiles enough or steps too few.
std::vector<int> split_k_candidates(double tiles, double steps, int together, const Target& target);
// Steps of the longest share.
double steps_per_split(double steps, int together, int split_k);

// Cycles for what the shares leave of so many sums, the kernel more, and what the model of tiles may be wrong by.
double split_k_cycles(double cycles, double accumulators, int split_k, const Target& target);

}  // namespace fusec
