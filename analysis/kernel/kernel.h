// One kernel before it has a schedule: an expression for each output, with loads only of tensors that are in memory.
// The formulas of fused producers are substituted into their consumers and have no memory of their own.
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
  std::vector<std::uint32_t> axes;  // of the pool; after lowering their extents are the shape of the largest output
  ExprId expr;                      // in compute_type(type.dtype); the store rounds to the dtype
  std::vector<IndexExpr> index;     // where `expr` is stored, over `axes`; after lowering all or some of the axes

  bool operator==(const KernelOutput&) const = default;
};

// An expression that equals a graph value at some index. Emitted code takes the value's name for it.
struct NamedExpr {
  ExprId expr;
  ValueId value;

  bool operator==(const NamedExpr&) const = default;
};

// All outputs have the same axes, with two exceptions. In a kernel of rows (analysis/lowering/shared_space.h) an output
// may have one element per row: its index uses row axes only, and it is stored once per row. In attention an output may
// be an operand of a reduction (the weights): it has the axes of this reduction too.
struct Kernel {
  ExprPool pool;
  std::vector<KernelOutput> outputs;
  std::vector<NodeId> nodes;  // nodes that the kernel computes, in topological order; used for names and comments
  std::vector<NamedExpr> named;
  bool exact_steps = false;  // EmitOptions::round_intermediates: do not contract a * b + c into an FMA
  Numerics numerics = {};    // inexact arithmetic that the schedule may use

  bool operator==(const Kernel&) const = default;
};

// Returns the outputs' expressions.
std::vector<ExprId> roots_of(const Kernel& kernel);

// Returns the product of the axes' extents.
IndexExpr point_count(const ExprPool& pool, const std::vector<std::uint32_t>& axes);
IndexExpr simplified_point_count(const ExprPool& pool, const std::vector<std::uint32_t>& axes);

// The axes that each expression of a pool depends on, sorted.
class Dependences {
 public:
  Dependences() = default;
  explicit Dependences(const ExprPool& pool);
  std::span<const std::uint32_t> operator[](ExprId id) const { return of(places_[id]); }
  std::size_t size() const { return places_.size(); }

 private:
  struct Place {
    std::uint32_t begin = 0, size = 0;  // in axes_
    bool operator==(const Place&) const = default;
  };
  std::span<const std::uint32_t> of(Place place) const { return {axes_.data() + place.begin, place.size}; }
  Place kept(std::span<const std::uint32_t> axes);
  Place united(Place a, Place b);
  Place with_axes_of(Place place, const IndexExpr& e);

  std::vector<Place> places_;  // by expression; many expressions depend on the same axes
  std::vector<std::uint32_t> axes_;
};

inline Dependences dependences(const ExprPool& pool) {
  return Dependences(pool);
}

// Returns whether a loaded value in `position` (an embedding's row number) depends on one of the axes. The position
// then depends on that axis even if its own terms are constant along it.
bool is_indirect_along(const IndexExpr& position, const std::vector<std::uint32_t>& axes, const ExprPool& pool);

// Returns the tensors that a kernel loads, each once, in order of the first load.
std::vector<ValueId> inputs_of(const Kernel& kernel);

// Returns the reductions that depend on output axes only, operands first.
std::vector<ExprId> row_reductions(const Kernel& kernel);

// Returns whether some output has 4-bit elements. Threads must store these in pairs, which only the pointwise and
// elements forms do.
bool writes_half_bytes(const Kernel& kernel);

}  // namespace fusec
