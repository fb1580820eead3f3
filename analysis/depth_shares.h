// Where a product has few tiles and a long depth, several blocks make one tile: each sums up a share of the depth and
// leaves its sums in memory, and a second kernel adds them up, in the order of the shares, ahead of what stands behind
// the product.
//
//   64 x 64 of 16384      one block of 64x64     ->   16 blocks that have 1024 of the depth each
//
// Into how many shares the depth goes is decided here, for the ways of products (gemm_form, warpgroup_gemm_form).
#pragma once

#include <vector>

#include "analysis/gemm_form.h"
#include "analysis/products.h"
#include "analysis/target.h"

namespace fusec {

// A depth that is known and other sizes that are bounded, one sum over the depth at a time; tiles of 64x64 for a quarter
// of the multiprocessors at most.
bool is_few_and_deep(const ExprPool& pool, const Product& product, const Target& target);
// The same, of factors that are multiplied as they lie in memory.
bool may_share_depth(const ExprPool& pool, const Product& product, const GemmForm& form, const Target& target);

// Numbers of shares to try, of so many tiles with so many steps along the depth each; none where there are tiles enough
// or steps too few.
std::vector<int> depth_shares(double tiles, double steps, const Target& target);

// Cycles for what the shares leave of so many sums, the kernel more, and what the model of tiles may be wrong by.
double shared_cycles(double cycles, double sums, int shares, const Target& target);

}  // namespace fusec
