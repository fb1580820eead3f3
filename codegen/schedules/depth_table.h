// What a convolution's factor is read by (analysis/convolution_form.h): a table in shared memory of what each step of
// the depth adds to a position, with the bits of its taps, and for a line of a tile the bits of those that are outside.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/convolution_form.h"
#include "codegen/emit_expr.h"

namespace fusec {

struct DepthTable {
  const ConvolutionFactor& factor;
  const std::vector<std::uint32_t>& axes;  // of the depth, in its order
  std::int64_t depth;
  std::int64_t entries;  // at least for all of the depth; what is beyond it is outside of every line
  int each;              // elements of one entry
};

// Threads of the block, so many, write the table of this name, a DepthStep*.
void make_depth_table(ExprEmitter& emitter, const DepthTable& table, const std::string& name, int threads);

// Adds the taps that are outside to the word, where the line's axes are bound.
void find_taps_outside(ExprEmitter& emitter, const ConvolutionFactor& factor, const std::string& outside);

}  // namespace fusec
