// Which expressions can be -0, and what that spares.
#include "analysis/kernel/negative_zero.h"

#include <doctest/doctest.h>

using namespace fusec;

namespace {

struct Some {
  ExprPool pool;
  std::uint32_t i = pool.new_axis(8), k = pool.new_axis(16);
  ExprId x = pool.load(0, DType::kFloat32, {IndexExpr::axis(i)});
  ExprId row = pool.load(1, DType::kFloat32, {IndexExpr::axis(i), IndexExpr::axis(k)});
  ExprId zero = pool.constant(ScalarType::kFloat32, 0.0), negative = pool.constant(ScalarType::kFloat32, -0.0);
  ExprId sum = pool.reduce(Reduction::kSum, {k}, row);

  ExprId relu_of(ExprId value) { return fold_to_maximum(pool, pool.binary(ExprOp::kLt, value, zero), zero, value); }
};

}  // namespace

TEST_CASE("what can be -0") {
  Some s;
  CHECK(may_be_negative_zero(s.pool, s.x));
  CHECK(may_be_negative_zero(s.pool, s.negative));
  CHECK(may_be_negative_zero(s.pool, s.pool.binary(ExprOp::kMul, s.sum, s.x)));
  CHECK(may_be_negative_zero(s.pool, s.pool.binary(ExprOp::kAdd, s.x, s.negative)));
  CHECK(may_be_negative_zero(s.pool, s.pool.reduce(Reduction::kMax, {s.k}, s.row)));
  CHECK(!may_be_negative_zero(s.pool, s.zero));
  CHECK(!may_be_negative_zero(s.pool, s.sum));
  CHECK(!may_be_negative_zero(s.pool, s.pool.binary(ExprOp::kAdd, s.sum, s.x)));
  CHECK(!may_be_negative_zero(s.pool, s.pool.binary(ExprOp::kSub, s.sum, s.x)));
  CHECK(!may_be_negative_zero(s.pool, s.pool.unary(ExprOp::kExp, s.x)));
}

TEST_CASE("a chain of sums is answered at once") {
  Some s;
  ExprId all = s.x;
  for (int i = 0; i < 100000; ++i) all = s.pool.binary(ExprOp::kAdd, all, s.pool.unary(ExprOp::kNeg, all));
  CHECK(may_be_negative_zero(s.pool, all));
}

TEST_CASE("relu is a maximum where its operand cannot be -0") {
  Some s;
  CHECK(s.relu_of(s.x) == kNoExpr);
  CHECK(s.relu_of(s.sum) == s.pool.binary(ExprOp::kMax, s.sum, s.zero));
  CHECK(fold_to_maximum(s.pool, s.pool.binary(ExprOp::kLt, s.sum, s.zero), s.negative, s.sum) == kNoExpr);
}

TEST_CASE("a sum over axes of extent 1 begins with +0") {
  Some s;
  CHECK(s.pool.reduce(Reduction::kSum, {}, s.x) == s.pool.binary(ExprOp::kAdd, s.x, s.zero));
  CHECK(s.pool.reduce(Reduction::kMax, {}, s.x) == s.x);
}
