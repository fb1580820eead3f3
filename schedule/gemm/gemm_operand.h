// An operand of the pipelined GEMM: copied as stored, or computed from copies of its sources.
//
//   x[m, k]                                  copied to the tile in 16-byte pieces
//   silu(x[m, k]) * g[k]   in float16        each thread copies the pieces of x for the elements that it computes
//   w[n, k] * s[n, k // 128]   w in int4     pieces of w are copied and dequantized; s multiplies the partial sums of
//                                            each 128 of K
//   x[m, k] - z               in int8        x is multiplied; z times the sums of w is subtracted from the accumulators
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ir/dtype.h"
#include "ir/graph.h"
#include "schedule/gemm/operand_scales.h"
#include "schedule/target/target.h"

namespace fusec {

struct GemmOperand {
  ExprId load = kNoExpr;
  int element_bits = 0;  // bits of a stored element
  bool k_major = false;  // neighbours in memory are neighbours along K; otherwise across K
  // position = across + k: across over rows or columns and the batch (or looked up), k over the axes of K.
  IndexExpr across, k;
  // Elements from one step of flattened K to the next; nullopt if it varies.
  std::optional<IndexExpr> k_stride;
  // For a transformed operand: the value of an element, the copies it is computed from, and the most elements per
  // piece. `load` and the members after it describe the first copy.
  ExprId value = kNoExpr;
  std::vector<GemmOperand> copies;
  int piece = 0;
  // Factors of the partial sums over blocks of K (GemmLoop::block).
  std::vector<ExprId> scales;
  // The zero point of int8: instead of subtracting it from every element, the kernel subtracts it times the sums of the
  // other operand from the accumulators.
  ExprId offset = kNoExpr;

  bool transformed() const { return value != kNoExpr; }
};

// The axes of an operand: rows or columns, and K.
struct OperandAxes {
  const std::vector<std::uint32_t>& across;
  const std::vector<std::uint32_t>& k;
  // Guards that hold wherever a block loads.
  std::function<bool(ExprId guard)> holds = nullptr;
  ExprId known = kNoExpr;  // a value that is the same for a whole block
};

// The operand multiplied in the dtype. `block`: length of K with constant scales (0: all of K).
std::optional<GemmOperand> find_gemm_operand(const Graph& graph, const ExprPool& pool, ExprId operand_expr,
                                             const OperandAxes& axes, DType multiplied, std::int64_t& block);

// The zero point of `integer - zero point`, if it is the same for the whole operand; otherwise nullopt.
std::optional<ExprId> offset_of(const ExprPool& pool, ExprId operand_expr, const OperandAxes& axes);

// What one step of the flattened axes adds to a position. Returns nullopt if it varies, if the axes have one point
// only, or if the position depends on values loaded along them.
std::optional<IndexExpr> flat_stride(const IndexExpr& position, const std::vector<std::uint32_t>& axes,
                                     const ExprPool& pool);

// True if the stored dtype can be multiplied without conversion. Float8 GEMMs take both kinds.
bool multiplies(DType multiplied, DType stored);

}  // namespace fusec
