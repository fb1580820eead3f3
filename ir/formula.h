// What an op's formula is written with: loads of operands, arithmetic, guards and reductions (an op's row is in
// ir/ops/).
//
//   silu:       [](Formula& f, size_t, auto i) { E x = f.load(0, i); return x * sigmoid(x); }
//   transpose:  f.load(0, {i[1], i[0]})
//   row sum:    f.reduce(Reduction::kSum, {n}, [&](auto k) { return f.load(0, {i[0], k[0]}); })
//   pad:        f.guarded(f.inside(j, n), [&] { return f.load(0, {j}); }, f.number(value))
//
// A formula may be asked for any index expression, and a load may be answered by another op's formula: that is fusion.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/expr.h"
#include "ir/op.h"

namespace fusec {

// A handle that makes formulas readable; converts to the ExprId that the row returns.
struct E {
  ExprPool* pool = nullptr;
  ExprId id = kNoExpr;
  operator ExprId() const { return id; }  // NOLINT(google-explicit-constructor)
  ScalarType type() const { return (*pool)[id].type; }
};

// Operands of different types are brought to the wider (bool < int32 < uint32 < int64 < uint64 < float32 < float64).
E operator+(E a, E b);
E operator-(E a, E b);
E operator*(E a, E b);
E operator/(E a, E b);
E operator-(E a);
// A constant takes the other operand's type.
E operator+(E a, double b);
E operator-(E a, double b);
E operator-(double a, E b);
E operator*(E a, double b);
E operator/(double a, E b);
E operator/(E a, double b);
E operator&&(E a, E b);
E operator||(E a, E b);
E operator!(E a);
E operator<(E a, E b);
E operator<=(E a, E b);
E operator>(E a, E b);
E operator>=(E a, E b);
E operator<(E a, double b);
E operator>(E a, double b);
E operator<=(E a, double b);
E operator>=(E a, double b);
E equal(E a, E b);
E not_equal(E a, E b);
E apply(ExprOp op, E a);
E apply(ExprOp op, E a, E b);
E select(E condition, E then, E otherwise);
E select(E condition, E then, double otherwise);
E select(E condition, double then, E otherwise);
inline E exp(E a) {
  return apply(ExprOp::kExp, a);
}
inline E log(E a) {
  return apply(ExprOp::kLog, a);
}
inline E sqrt(E a) {
  return apply(ExprOp::kSqrt, a);
}
inline E rsqrt(E a) {
  return apply(ExprOp::kRsqrt, a);
}
inline E tanh(E a) {
  return apply(ExprOp::kTanh, a);
}
inline E erf(E a) {
  return apply(ExprOp::kErf, a);
}
inline E sigmoid(E a) {
  return apply(ExprOp::kSigmoid, a);
}
inline E maximum(E a, E b) {
  return apply(ExprOp::kMax, a, b);
}
inline E minimum(E a, E b) {
  return apply(ExprOp::kMin, a, b);
}

class Formula {
 public:
  using Index = std::span<const IndexExpr>;

  Formula(ExprPool& pool, std::span<const Operand> operands, const Attributes& attributes,
          std::span<const ValueType> outputs)
      : pool_(pool), operands_(operands), attributes_(attributes), outputs_(outputs) {}

  ExprPool& pool() { return pool_; }
  const Attributes& attributes() const { return attributes_; }
  std::size_t operand_count() const { return operands_.size(); }
  bool has(std::size_t operand) const;
  const Operand& operand(std::size_t i) const { return operands_[i]; }
  const TensorType& type(std::size_t operand) const { return operands_[operand].type.tensor; }
  const TensorType& output_type(std::size_t output = 0) const { return outputs_[output].tensor; }

  // The operand's value at an index (rank must agree; numbers and dims ignore it), in its compute type, or converted to
  // `as`.
  E load(std::size_t operand, Index index);
  E load(std::size_t operand, std::initializer_list<IndexExpr> index) {
    return load(operand, Index(index.begin(), index.size()));
  }
  E load(std::size_t operand, Index index, ScalarType as);
  // The same for an operand that broadcasts to the output: trailing dimensions align, dimensions of 1 are indexed with
  // 0.
  E load_broadcast(std::size_t operand, Index index);
  E load_broadcast(std::size_t operand, Index index, ScalarType as);

  E number(double v, ScalarType type = ScalarType::kFloat32) { return {&pool_, pool_.constant(type, v)}; }
  E integer(std::int64_t v, ScalarType type = ScalarType::kInt64) { return {&pool_, pool_.constant(type, v)}; }
  E scalar(const Scalar& v, ScalarType type);
  E boolean(bool v) { return {&pool_, pool_.boolean(v)}; }
  E index(const IndexExpr& e) { return {&pool_, pool_.index(e)}; }
  E convert(E e, ScalarType to) { return {&pool_, pool_.convert(e, to)}; }
  E round(E e, DType to) { return {&pool_, pool_.round(e, to)}; }

  IndexExpr simplified(const IndexExpr& e) { return simplify(e, pool_.bounds()); }
  E inside(const IndexExpr& e, const IndexExpr& extent);  // 0 <= e < extent, decided where the bounds decide it
  E less(const IndexExpr& a, const IndexExpr& b) { return {&pool_, pool_.less(a, b)}; }
  // A loaded integer as an index into a dimension of `extent`: clamped, so that no access leaves the tensor.
  IndexExpr as_index(E e, const IndexExpr& extent) { return pool_.as_index(e, extent); }

  // `value` where the condition holds; every load that it makes is made only then. Elsewhere `otherwise`.
  E guarded(E condition, const std::function<E()>& value, E otherwise);
  // The reduction over fresh axes of these extents; an empty list is the body itself.
  E reduce(Reduction r, const std::vector<IndexExpr>& extents, const std::function<E(Index)>& body);
  E sum(const std::vector<IndexExpr>& extents, const std::function<E(Index)>& body) {
    return reduce(Reduction::kSum, extents, body);
  }

 private:
  friend class FormulaGuard;
  ExprPool& pool_;
  std::span<const Operand> operands_;
  const Attributes& attributes_;
  std::span<const ValueType> outputs_;
  ExprId guard_ = kNoExpr;  // what holds where the formula now stands
 public:
  // Everything the formula loads from here on happens only where `guard` holds (used when formulas are put into guarded
  // loads).
  void set_guard(ExprId guard) { guard_ = guard; }
};

}  // namespace fusec
