// One kernel before it has a schedule: expressions for its outputs, with loads only of tensors that are in memory. What
// was fused has no memory of its own any more: producers' formulas stand inside their consumers'.
//
//   group {silu, mul}:   h[i, j] = silu(gate[i, j]) * up[i, j]     one output, axes i < tokens, j < 14336
#pragma once

#include <string>
#include <vector>

#include "analysis/kernel/numerics.h"
#include "ir/expr.h"
#include "ir/graph.h"

namespace fusec {

struct KernelOutput {
  ValueId value;
  TensorType type;
  std::vector<std::uint32_t> axes;  // of the pool; as lowered, their extents are the shape of the largest output
  ExprId expr;                      // in compute_type(type.dtype); the store rounds to the dtype
  std::vector<IndexExpr> index;     // where `expr` is stored, over `axes`: as lowered, the axes themselves, or some

  bool operator==(const KernelOutput&) const = default;
};

// An expression that is a graph value at some index: where its readable name comes from.
struct NamedExpr {
  ExprId expr;
  ValueId value;

  bool operator==(const NamedExpr&) const = default;
};

// All outputs have the same axes. In a kernel of rows (analysis/lowering/shared_space.h) an output may have an element
// a row only: its index then names the axes of rows alone, and it is stored once for them. In attention an output may
// be what stands inside a reduction (the weights): it has that reduction's axes besides.
struct Kernel {
  ExprPool pool;
  std::vector<KernelOutput> outputs;
  std::vector<NodeId> nodes;  // whose formulas are inside, in topological order: for names and comments
  std::vector<NamedExpr> named;
  bool exact_steps = false;  // EmitOptions::round_intermediates: products and sums must not contract
  Numerics numerics = {};    // what the schedule may do to arithmetic

  bool operator==(const Kernel&) const = default;
};

// What its outputs are.
std::vector<ExprId> roots_of(const Kernel& kernel);

// The number of points of the axes' space.
IndexExpr point_count(const ExprPool& pool, const std::vector<std::uint32_t>& axes);
IndexExpr simplified_point_count(const ExprPool& pool, const std::vector<std::uint32_t>& axes);

// The axes on which each value of the pool depends, sorted, by node.
std::vector<std::vector<std::uint32_t>> dependences(const ExprPool& pool);

// Do loaded values that the position is made of (rows that are looked up) depend on some of the axes? The position then
// does, too, wherever the axes stand in it.
bool is_indirect_along(const IndexExpr& position, const std::vector<std::uint32_t>& axes, const ExprPool& pool);

// The tensors a kernel loads, each once, in order of first load (by walking the outputs in order).
std::vector<ValueId> inputs_of(const Kernel& kernel);

// Reductions that depend on output axes alone, operands first.
std::vector<ExprId> row_reductions(const Kernel& kernel);

// Half-byte elements are written in pairs, which only forms without a shape of their own do.
bool writes_half_bytes(const Kernel& kernel);

}  // namespace fusec
