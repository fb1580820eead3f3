// One factor of a product, as the pipelined GEMM takes it: copied as it lies in memory, or computed on its way from the
// copies of what it is computed from.
//
//   x[m, k]                                  copied to the tile in 16-byte pieces
//   silu(x[m, k]) * g[k]   in float16        pieces of x are copied, each by the thread that computes the same elements
//                                            of the tile from them
//   w[n, k] * s[n, k // 128]   w in int4     pieces of w are copied and widened to what is multiplied; sums are
//                                            multiplied by s after 128 of the depth each
//   x[m, k] - z               in int8        x is multiplied; z times the sums of w are taken from the sums
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
  int element_bits = 0;  // as it lies in memory
  bool k_major = false;  // neighbours in memory are neighbours along the depth, else across it
  // The position is their sum: over rows or columns and the batch (or what they look up), over the depth's axes.
  IndexExpr across, k;
  // Elements from one step of the depth, flattened, to the next; nothing where that is not always the same.
  std::optional<IndexExpr> k_stride;
  // Of a factor that is computed: each element's value, what is copied for it, and how many elements are made of one
  // piece of each, at most. `load` and what belongs to it is the first of the copies.
  ExprId value = kNoExpr;
  std::vector<GemmOperand> copies;
  int piece = 0;
  // By which sums are multiplied that were made of blocks of the depth (GemmLoop::block).
  std::vector<ExprId> scales;
  // Of int8: a number that is to be taken from every element, and is taken from the sums, times those of the other
  // factor (a zero point).
  ExprId offset = kNoExpr;

  bool transformed() const { return value != kNoExpr; }
};

// The axes that a factor runs along: rows or columns, and the depth.
struct OperandAxes {
  const std::vector<std::uint32_t>& across;
  const std::vector<std::uint32_t>& k;
  // Guards of loads that hold wherever a block loads at all.
  std::function<bool(ExprId guard)> holds = nullptr;
  ExprId known = kNoExpr;  // a value that is the same for all of a block
};

// A factor that is multiplied in the dtype. `block`: of the depth, for which its scales are the same (0: all of it).
std::optional<GemmOperand> find_gemm_operand(const Graph& graph, const ExprPool& pool, ExprId operand_expr,
                                             const OperandAxes& axes, DType multiplied, std::int64_t& block);

// Of an integer less another, which is one for all of the factor: what is taken. Nothing of any other factor.
std::optional<ExprId> offset_of(const ExprPool& pool, ExprId operand_expr, const OperandAxes& axes);

// What one step of the axes, flattened, adds to a position, where that is the same everywhere; nothing, too, where they
// make no step, or loaded values that the position is made of depend on them.
std::optional<IndexExpr> flat_stride(const IndexExpr& position, const std::vector<std::uint32_t>& axes,
                                     const ExprPool& pool);

// Is an element of the stored dtype multiplied as it lies there? Float8 products take both kinds.
bool multiplies(DType multiplied, DType stored);

}  // namespace fusec
