#include "ir/formula.h"

#include "ir/error.h"

namespace fusec {
namespace {

ScalarType wider(ScalarType a, ScalarType b) {
  return std::max(a, b);
}

E of_type(E e, ScalarType t) {
  return {e.pool, e.pool->convert(e.id, t)};
}
E like(E e, double v) {
  return {e.pool, e.pool->constant(e.type(), v)};
}

E join(ExprOp op, E a, E b) {
  const ScalarType t = wider(a.type(), b.type());
  return {a.pool, a.pool->binary(op, of_type(a, t).id, of_type(b, t).id)};
}

}  // namespace

E operator+(E a, E b) {
  return join(ExprOp::kAdd, a, b);
}
E operator-(E a, E b) {
  return join(ExprOp::kSub, a, b);
}
E operator*(E a, E b) {
  return join(ExprOp::kMul, a, b);
}
E operator/(E a, E b) {
  return join(ExprOp::kDiv, a, b);
}
E operator-(E a) {
  return apply(ExprOp::kNeg, a);
}
E operator+(E a, double b) {
  return a + like(a, b);
}
E operator-(E a, double b) {
  return a - like(a, b);
}
E operator-(double a, E b) {
  return like(b, a) - b;
}
E operator*(E a, double b) {
  return a * like(a, b);
}
E operator/(double a, E b) {
  return like(b, a) / b;
}
E operator/(E a, double b) {
  return a / like(a, b);
}
E operator&&(E a, E b) {
  return join(ExprOp::kAnd, of_type(a, ScalarType::kBool), of_type(b, ScalarType::kBool));
}
E operator||(E a, E b) {
  return join(ExprOp::kOr, of_type(a, ScalarType::kBool), of_type(b, ScalarType::kBool));
}
E operator!(E a) {
  return apply(ExprOp::kNot, of_type(a, ScalarType::kBool));
}
E operator<(E a, E b) {
  return join(ExprOp::kLt, a, b);
}
E operator<=(E a, E b) {
  return join(ExprOp::kLe, a, b);
}
E operator>(E a, E b) {
  return join(ExprOp::kGt, a, b);
}
E operator>=(E a, E b) {
  return join(ExprOp::kGe, a, b);
}
E operator<(E a, double b) {
  return a < like(a, b);
}
E operator>(E a, double b) {
  return a > like(a, b);
}
E operator<=(E a, double b) {
  return a <= like(a, b);
}
E operator>=(E a, double b) {
  return a >= like(a, b);
}
E equal(E a, E b) {
  return join(ExprOp::kEq, a, b);
}
E not_equal(E a, E b) {
  return join(ExprOp::kNe, a, b);
}
E apply(ExprOp op, E a) {
  return {a.pool, a.pool->unary(op, a.id)};
}
E apply(ExprOp op, E a, E b) {
  if (op == ExprOp::kShl || op == ExprOp::kShr) return {a.pool, a.pool->binary(op, a.id, b.id)};
  return join(op, a, b);
}
E select(E condition, E then, E otherwise) {
  const ScalarType t = wider(then.type(), otherwise.type());
  return {then.pool,
          then.pool->select(of_type(condition, ScalarType::kBool).id, of_type(then, t).id, of_type(otherwise, t).id)};
}
E select(E condition, E then, double otherwise) {
  return select(condition, then, like(then, otherwise));
}
E select(E condition, double then, E otherwise) {
  return select(condition, like(otherwise, then), otherwise);
}

bool Formula::has(std::size_t operand) const {
  return operand < operands_.size() && operands_[operand].kind != Operand::Kind::kAbsent;
}

E Formula::load(std::size_t operand, Index index) {
  if (!has(operand)) throw InternalError("a formula loads an absent operand");
  const Operand& o = operands_[operand];
  switch (o.kind) {
    case Operand::Kind::kNumber:
      return scalar(o.number, compute_type(o.type.tensor.dtype));
    case Operand::Kind::kDim:
      return this->index(o.dim);
    case Operand::Kind::kTensor:
      if (index.size() != o.type.tensor.rank()) throw InternalError("a formula loads with a wrong number of indices");
      return {&pool_, pool_.load(o.value, o.type.tensor.dtype, {index.begin(), index.end()}, guard_)};
    case Operand::Kind::kAbsent:
    case Operand::Kind::kTuple:
      break;
  }
  throw InternalError("a formula loads an operand that is no tensor");
}

E Formula::load(std::size_t operand, Index index, ScalarType as) {
  // Convert a number directly to the wanted type: 0.1 in float64 is not float32's 0.1.
  if (has(operand) && operands_[operand].kind == Operand::Kind::kNumber) return scalar(operands_[operand].number, as);
  return convert(load(operand, index), as);
}

E Formula::load_broadcast(std::size_t operand, Index index) {
  if (!has(operand) || operands_[operand].kind != Operand::Kind::kTensor) return load(operand, index);
  const Shape& shape = type(operand).shape;
  if (shape.size() > index.size()) throw InternalError("an operand of higher rank than the output does not broadcast");
  std::vector<IndexExpr> own(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i)
    own[i] = shape[i].is(1) ? IndexExpr(0) : index[index.size() - shape.size() + i];
  return load(operand, own);
}

E Formula::load_broadcast(std::size_t operand, Index index, ScalarType as) {
  if (has(operand) && operands_[operand].kind == Operand::Kind::kNumber) return scalar(operands_[operand].number, as);
  return convert(load_broadcast(operand, index), as);
}

E Formula::scalar(const Scalar& v, ScalarType type) {
  if (v.category == Category::kFloat) return {&pool_, pool_.constant(type, v.real)};
  return {&pool_, pool_.constant(type, v.integer)};
}

E Formula::inside(const IndexExpr& e, const IndexExpr& extent) {
  const E low{&pool_, pool_.nonnegative(e)}, high{&pool_, pool_.less(e, extent)};
  return low && high;
}

E Formula::guarded(E condition, const std::function<E()>& value, E otherwise) {
  const ExprNode& known = pool_[condition.id];
  if (known.op == ExprOp::kConstant && known.integer == 0) return otherwise;
  const ExprId outer = guard_;
  guard_ = outer == kNoExpr ? condition.id : pool_.binary(ExprOp::kAnd, outer, condition.id);
  const E inside_value = value();
  guard_ = outer;
  return select(condition, inside_value, otherwise);
}

E Formula::reduce(Reduction r, const std::vector<IndexExpr>& extents, const std::function<E(Index)>& body) {
  std::vector<IndexExpr> index;
  std::vector<std::uint32_t> axes;
  for (const IndexExpr& extent : extents) {
    axes.push_back(pool_.new_axis(simplified(extent)));
    index.push_back(IndexExpr::axis(axes.back()));
  }
  const E value = body(index);
  return {&pool_, pool_.reduce(r, std::move(axes), value.id)};
}

}  // namespace fusec
