// The language of op formulas (ir/ops/): loads of operands, arithmetic, guards and reductions.
//
//   silu:       [](Formula& f, size_t, auto i) { E x = f.load(0, i); return x * sigmoid(x); }
//   transpose:  f.load(0, {i[1], i[0]})
//   row sum:    f.reduce(Reduction::kSum, {n}, [&](auto k) { return f.load(0, {i[0], k[0]}); })
//   pad:        f.guarded(f.inside(j, n), [&] { return f.load(0, {j}); }, f.number(value))
//
// A formula can be evaluated at any index expression. Fusion replaces a load by the formula of the op that produces
// the loaded value.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/expr.h"
#include "ir/op.h"

namespace fusec {

// An expression with operators, so that formulas read as arithmetic. Converts to the ExprId that a row returns.
struct E {
  ExprPool* pool = nullptr;
  ExprId id = kNoExpr;
  operator ExprId() const { return id; }  // NOLINT(google-explicit-constructor)
  ScalarType type() const { return (*pool)[id].type; }
};

// Operands are converted to the wider of their types (bool < int32 < uint32 < int64 < uint64 < float32 < float64).
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

  // The operand's value at an index of the operand's rank, in its compute type or converted to `as`. Numbers and
  // dimensions ignore the index.
  E load(std::size_t operand, Index index);
  E load(std::size_t operand, std::initializer_list<IndexExpr> index) {
    return load(operand, Index(index.begin(), index.size()));
  }
  E load(std::size_t operand, Index index, ScalarType as);
  // The value at an output index of an operand that broadcasts to the output. Trailing dimensions align; dimensions of
  // extent 1 are read at 0.
  E load_broadcast(std::size_t operand, Index index);
  E load_broadcast(std::size_t operand, Index index, ScalarType as);

  E number(double v, ScalarType type = ScalarType::kFloat32) { return {&pool_, pool_.constant(type, v)}; }
  E integer(std::int64_t v, ScalarType type = ScalarType::kInt64) { return {&pool_, pool_.constant(type, v)}; }
  E scalar(const Scalar& v, ScalarType type);
  E boolean(bool v) { return {&pool_, pool_.boolean(v)}; }
  E index(const IndexExpr& e) { return {&pool_, pool_.index(e)}; }
  E convert(E e, ScalarType to) { return {&pool_, pool_.convert(e, to)}; }
  E round(E e, DType to) { return {&pool_, pool_.round(e, to)}; }

  IndexExpr simplified(const IndexExpr& e) { return pool_.simplified(e); }
  E inside(const IndexExpr& e, const IndexExpr& extent);  // 0 <= e < extent; a constant if the bounds decide it
  E less(const IndexExpr& a, const IndexExpr& b) { return {&pool_, pool_.less(a, b)}; }
  // A loaded integer as an index into a dimension of `extent`, clamped so that no access leaves the tensor.
  IndexExpr as_index(E e, const IndexExpr& extent) { return pool_.as_index(e, extent); }

  // `value` if the condition holds, else `otherwise`. Loads of `value` happen only if the condition holds.
  E guarded(E condition, const std::function<E()>& value, E otherwise);
  // The reduction over new axes of these extents; the body itself for an empty list.
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
  ExprId guard_ = kNoExpr;  // condition under which the loads made now happen
 public:
  // All further loads of the formula happen only if `guard` holds. Used when a formula replaces a guarded load.
  void set_guard(ExprId guard) { guard_ = guard; }
};

}  // namespace fusec
