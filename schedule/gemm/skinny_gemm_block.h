// Chooses the columns, the warps and the prefetched steps of a skinny GEMM's blocks.
//
// A block has 16 to 64 columns. Every block reads all rows of x through L2, so blocks become wider as long as that
// reduces the predicted time noticeably and most multiprocessors still have a block. The warps of a block split K; each
// prefetches as many steps as its registers hold.
#pragma once

#include <string>
#include <vector>

#include "schedule/target/target.h"

namespace fusec {

struct SkinnyGemmForm;

struct SkinnyGemmBlock {
  int columns = 16;
  int warps = 8;
  int prefetch_steps = 4;  // steps of loads in flight

  friend bool operator==(const SkinnyGemmBlock&, const SkinnyGemmBlock&) = default;
};

// A description such as "32 columns by 8 warps, 4 steps ahead".
std::string name_of(const SkinnyGemmBlock& block);

// The size of the GEMM, with symbols at their hints.
struct SkinnyGemmSizes {
  double rows = 1, columns = 1;  // columns of all batches together
  std::vector<double> k_groups;  // per loop: groups of SkinnyGemmForm::k_per_lane neighbours
  // The maxima over the loops:
  int right_bits = 0;      // bits of an element, summed over the loop's right operands
  int computed_right = 0;  // right operands that are computed from their loads
};

// Sets the candidates of a form that is complete otherwise, and its block, the first of them.
void choose_block(SkinnyGemmForm& form, const SkinnyGemmSizes& sizes, const Target& target);

}  // namespace fusec
