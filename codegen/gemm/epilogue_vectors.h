// The GEMM epilogue for schedules with eight neighbouring accumulators of a row per lane. The last column axis is split
// into groups of eight, and the epilogue of a group reads and writes 16 bytes.
//
//   y[i, j] = gelu(sum[i, j] + bias[j])     ->     y[i, 8 * c + e], with sum as an array of eight at (i, c)
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "schedule/gemm/contraction.h"

namespace fusec {

inline constexpr int kEpilogueVectorWidth = 8;

// The kernel with the last column axis in groups of `width`, and its new axes and accumulators.
struct EpilogueVectors {
  Kernel kernel;
  std::vector<std::uint32_t> batch, rows, columns;  // columns: groups of eight
  std::vector<std::uint32_t> unit_axes;             // axes of extent 1 and the expert axis
  std::uint32_t lane = 0;
  std::map<ExprId, std::string> accumulators;  // the given names, by the new ids of the accumulators
  std::map<ExprId, std::string> known;         // the text of other known values, by their new ids
  int width = kEpilogueVectorWidth;
};

// Returns 8 if the number of columns is a proven multiple of eight, else 1.
int epilogue_vector_width(const Kernel& kernel, const Contraction& contraction);

EpilogueVectors with_epilogue_vectors(const Kernel& kernel, const Contraction& contraction,
                                      const std::map<ExprId, std::string>& accumulators, int width,
                                      const std::map<ExprId, std::string>& known = {});

// Stores the elements of each output along the axis `lane`, of extent `width`, at the other axes, which are bound.
// `names`: for each accumulator an array with its elements. `elsewhere`: for each output the start of a call to which
// the words are appended; "" stores them to memory. `in_registers`: the arrays are registers, which loops that are not
// unrolled cannot index.
void emit_epilogue_vector(ExprEmitter& emitter, const Graph& graph, std::uint32_t lane, int width,
                          const std::map<ExprId, std::string>& names, const std::vector<std::string>& elsewhere = {},
                          bool in_registers = false);

// Stores one element of each output; the accumulators must be defined.
void emit_epilogue_scalar(ExprEmitter& emitter);

}  // namespace fusec
