// What a convolution's factor is read by (schedule/gemm/convolution_form.h): a table in shared memory of what each step
// of the depth adds to a position, with the bits of its taps, and for a line of a tile the bits of those that are
// outside. Where positions are looked up by line and tap, the table says which of a line's places it is instead.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "schedule/gemm/convolution_form.h"

namespace fusec {

struct KOffsetTable {
  const ConvolutionOperand& operand;
  const std::vector<std::uint32_t>& axes;  // of the depth, in its order
  std::int64_t k;
  std::int64_t entries;     // at least for all of the depth; what is beyond it is outside of every line
  int each;                 // elements of one entry
  std::int64_t stride = 0;  // where there is a table of places: from one tap's to the next
};

// Threads of the block, so many, write the table of this name, a DepthStep*.
void emit_k_offset_table(ExprEmitter& emitter, const KOffsetTable& table, const std::string& name, int threads);

// Where the line's axes are bound: the loop over its taps from `first`, so many further each time, that writes where
// each lies, or -1, to `places` (the line's place for the first tap). `there`: whether there is such a line, "" where
// it is.
struct LinePlaces {
  std::string places, there, first = "0";
  std::int64_t further = 1, stride = 0;
};
void find_places(ExprEmitter& emitter, const ConvolutionOperand& operand, const LinePlaces& line);

// Adds the taps that are outside to the word, where the line's axes are bound.
void find_taps_outside(ExprEmitter& emitter, const ConvolutionOperand& operand, const std::string& outside);

}  // namespace fusec
