// Emits the elements of a transformed operand: a thread computes a piece, neighbours along one line of the tile, from
// pieces of its sources.
//
//   silu(x[m, k]) * g[k]   of 8 neighbours   const Words<4> x_w = load_copied_piece<16, 128>(...);
//                                            const Words<4> g_w = load_words<4>(g + k);
//                                            for (int e = 0; e < 8; ++e) ...
//   w[n, k] in int4        of 32             int4 to float16, eight at a time (widened)
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "codegen/expr/emit_expr.h"
#include "schedule/gemm/gemm_operand.h"

namespace fusec {

struct OperandTransform {
  const Kernel& kernel;
  const Graph& graph;
  KernelWriter& writer;
  const GemmOperand& operand;
  OperandAxes axes;
  const std::vector<std::uint32_t>& batch;
  const std::vector<std::uint32_t>& unit_axes;
  std::optional<std::uint32_t> expert_index;  // the expert axis, and the variable with its value
  std::string matrix;
  DType multiplied;
  int piece;
  std::string batch_number;                            // flattened; "" if there is none
  std::string across_at, k_at;                         // flattened indices of the piece's first element
  std::function<std::string(std::size_t copy)> words;  // the text of a copy's piece
};

// Elements in units of the C pointer: 4-bit elements are stored in bytes.
IndexExpr in_storage(const IndexExpr& elements, const GemmOperand& operand, const Bounds& bounds);

// Emits statements that compute the piece. Returns the name of its words.
std::string emit_transformed_piece(const OperandTransform& pieces);

}  // namespace fusec
