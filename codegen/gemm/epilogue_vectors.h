// What stands behind a product, for schedules whose lanes have the sums of eight neighbouring columns of a row: the
// kernel with the last axis of its columns in eights, and the text of one eight, which reads and writes 16 bytes.
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

// The kernel with the last axis of its columns in groups of `width`, and what became of the product's axes and sums.
struct EpilogueVectors {
  Kernel kernel;
  std::vector<std::uint32_t> batch, rows, columns;  // columns: of eights
  std::vector<std::uint32_t> ones;  // axes of extent 1, and that of chosen matrices, which the sums know
  std::uint32_t lane = 0;
  std::map<ExprId, std::string> accumulators;  // as given, by the sums' new ids
  std::map<ExprId, std::string> known;         // likewise of other values
  int width = kEpilogueVectorWidth;
};

// Eight where whole eights of columns are proven, else one.
int epilogue_vector_width(const Kernel& kernel, const Contraction& product);

EpilogueVectors with_epilogue_vectors(const Kernel& kernel, const Contraction& product,
                                      const std::map<ExprId, std::string>& accumulators, int width,
                                      const std::map<ExprId, std::string>& known = {});

// Stores the outputs' eight elements at the bound axes; of each sum, `names` is a variable with an array `v` of eight.
// `elsewhere`: of each output, a call that lacks the words it stores ("": they are stored to memory).
void emit_epilogue_vector(ExprEmitter& emitter, const Graph& graph, const EpilogueVectors& eights,
                          const std::map<ExprId, std::string>& names, const std::vector<std::string>& elsewhere = {});

// The same of one element, whose sums were defined.
void emit_epilogue_scalar(ExprEmitter& emitter, const EpilogueVectors& eights);

}  // namespace fusec
