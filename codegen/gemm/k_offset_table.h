// Emits the tables of a convolution's operand (schedule/gemm/convolution_form.h): in shared memory the offset of each K
// step with the bits of its taps; per line of a tile the bits of the taps outside of the image. With a position table,
// the K table instead says which position of the line to use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "schedule/gemm/convolution_form.h"

namespace fusec {

struct KOffsetTable {
  const ConvolutionOperand& operand;
  const std::vector<std::uint32_t>& axes;  // of K, in tile order
  std::int64_t k;
  std::int64_t entries;     // at least K; entries beyond K are outside of every line
  int each;                 // elements per entry
  std::int64_t stride = 0;  // elements between taps of the position table, if there is one
};

// `threads` threads of the block write the table `name`, a KOffsetEntry*.
void emit_k_offset_table(ExprEmitter& emitter, const KOffsetTable& table, const std::string& name, int threads);

// Emits a loop that writes the positions of a line's taps to a position table; -1 if outside. The line's axes must be
// bound. `places`: pointer to the position of the first tap; `first`, `further`: start and step of the loop over taps;
// `there`: condition that the line exists, "" if it does.
struct LinePositions {
  std::string places, there, first = "0";
  std::int64_t further = 1, stride = 0;
};
void find_positions(ExprEmitter& emitter, const ConvolutionOperand& operand, const LinePositions& line);

// Sets the bits of the taps outside of the image in the word. The line's axes must be bound.
void find_taps_outside(ExprEmitter& emitter, const ConvolutionOperand& operand, const std::string& outside);

}  // namespace fusec
