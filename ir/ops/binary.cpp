// Elementwise ops of two operands, with NumPy broadcasting and PyTorch's type promotion.
#include "ir/error.h"
#include "ir/ops/clamp.h"
#include "ir/ops/common.h"
#include "ir/ops/table.h"

namespace fusec::ops {
namespace {

using BinaryBody = std::function<E(Formula&, E, E)>;

OpDef binary(std::string name, std::string summary) {
  OpDef row;
  row.name = std::move(name);
  row.family = "binary";
  row.summary = std::move(summary);
  row.operands = {"a", "b"};
  return row;
}

std::vector<ValueType> broadcast_both(const OpCall& call, DType dtype) {
  return {TensorType{dtype, broadcast_operands(call, {0, 1})}};
}

// The operands' common dtype, which differs from the result's dtype for comparisons.
DType common_dtype(const Formula& f) {
  const Operand operands[] = {f.operand(0), f.operand(1)};
  return promote(operands);
}

void refuse_bool(DType dtype, const std::string& hint) {
  if (dtype == DType::kBool) fail("", "wrong dtype", "bool operands", "integer or float operands", hint);
}

// An op with a result of the promoted dtype; integers wrap at their own width.
OpDef binary_arithmetic(std::string name, std::string summary, BinaryBody body, const char* instead_of_bool = nullptr) {
  OpDef row = binary(std::move(name), std::move(summary));
  row.infer = [instead_of_bool](const OpCall& call) {
    const DType dtype = promote(call, {0, 1});
    if (instead_of_bool) refuse_bool(dtype, instead_of_bool);
    return broadcast_both(call, dtype);
  };
  row.formula = [body = std::move(body)](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const DType dtype = f.output_type().dtype;
    return wrap(f, body(f, load_operand(f, 0, i, dtype), load_operand(f, 1, i, dtype)), dtype);
  };
  return row;
}

// An op with a float result; float32 for integers.
OpDef binary_floating(std::string name, std::string summary, BinaryBody body) {
  OpDef row = binary(std::move(name), std::move(summary));
  row.infer = [](const OpCall& call) { return broadcast_both(call, float_dtype(promote(call, {0, 1}))); };
  row.formula = [body = std::move(body)](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const DType dtype = f.output_type().dtype;
    return body(f, load_operand(f, 0, i, dtype), load_operand(f, 1, i, dtype));
  };
  return row;
}

// Loads an operand of a comparison. Numbers are rounded to the tensor's dtype, as in PyTorch: bfloat16's 0.1 equals
// 0.1.
E load_compared(Formula& f, std::size_t operand, Formula::Index i, DType dtype) {
  const E value = load_operand(f, operand, i, dtype);
  return f.round(value, dtype);
}

OpDef comparison(std::string name, std::string summary, ExprOp op) {
  OpDef row = binary(std::move(name), std::move(summary));
  row.infer = [](const OpCall& call) {
    promote(call, {0, 1});
    return broadcast_both(call, DType::kBool);
  };
  row.formula = [op](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const DType dtype = common_dtype(f);
    return apply(op, load_compared(f, 0, i, dtype), load_compared(f, 1, i, dtype));
  };
  return row;
}

// A logical op on any dtype; nonzero values are true.
OpDef logical(std::string name, std::string summary, ExprOp op) {
  OpDef row = binary(std::move(name), std::move(summary));
  row.infer = [](const OpCall& call) { return broadcast_both(call, DType::kBool); };
  row.formula = [op](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    return apply(op, f.load_broadcast(0, i, ScalarType::kBool), f.load_broadcast(1, i, ScalarType::kBool));
  };
  return row;
}

OpDef bitwise(std::string name, std::string summary, ExprOp op) {
  OpDef row = binary(std::move(name), std::move(summary));
  row.infer = [](const OpCall& call) {
    const DType dtype = promote(call, {0, 1});
    if (is_float(dtype)) fail("", "wrong dtype", "float operands", "bool or integer operands");
    return broadcast_both(call, dtype);
  };
  row.formula = [op](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const DType dtype = f.output_type().dtype;
    return apply(op, load_operand(f, 0, i, dtype), load_operand(f, 1, i, dtype));
  };
  return row;
}

// The remainder with the divisor's sign; NaN for a divisor of 0.
E float_remainder(E a, E b) {
  const E rest = apply(ExprOp::kFmod, a, b);
  const E zero{a.pool, a.pool->constant(a.type(), 0.0)};
  const E crosses = not_equal(rest, zero) && not_equal(b < zero, rest < zero);
  return select(crosses, rest + b, rest);
}

// The quotient rounded down, as in Python. It uses the exact remainder, since a / b may round up to a whole number.
E float_floor_div(Formula& f, E a, E b) {
  const E rest = apply(ExprOp::kFmod, a, b);
  const E zero = f.number(0, a.type());
  E quotient = (a - rest) / b;
  quotient = select(not_equal(rest, zero) && not_equal(b < zero, rest < zero), quotient - 1.0, quotient);
  const E low = apply(ExprOp::kFloor, quotient);
  const E whole = select(quotient - low > 0.5, low + 1.0, low);
  const E signed_whole = select(equal(quotient, zero), a / b * 0.0, whole);
  return select(equal(b, zero), a / b, signed_whole);
}

OpDef div_row() {
  OpDef row = binary("div", "a / b; with rounding_mode the quotient rounded towards 0 (trunc) or down (floor)");
  row.attributes = {{"rounding_mode", AttributeType::kText, false, {"trunc", "floor"}}};
  row.infer = [](const OpCall& call) {
    const DType dtype = promote(call, {0, 1});
    if (!call.attributes.has("rounding_mode")) return broadcast_both(call, float_dtype(dtype));
    refuse_bool(dtype, "div of bool has no rounding_mode");
    return broadcast_both(call, dtype);
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const DType dtype = f.output_type().dtype;
    const E a = load_operand(f, 0, i, dtype), b = load_operand(f, 1, i, dtype);
    const std::string mode = f.attributes().text("rounding_mode");
    if (mode.empty()) return a / b;
    if (is_float(dtype)) return mode == "trunc" ? apply(ExprOp::kTrunc, a / b) : float_floor_div(f, a, b);
    return wrap(f, mode == "trunc" ? a / b : apply(ExprOp::kFloorDiv, a, b), dtype);
  };
  return row;
}

// Powers with exponents that PyTorch computes by multiplications and roots; nothing for others.
std::optional<E> simple_power(Formula& f, E x, double exponent) {
  if (exponent == 0) return f.number(1, x.type());
  if (exponent == 1) return x;
  if (exponent == 2) return x * x;
  if (exponent == 3) return x * x * x;
  if (!is_float(x.type())) return std::nullopt;
  if (exponent == 0.5) return sqrt(x);
  if (exponent == -0.5) return rsqrt(x);
  if (exponent == -1) return apply(ExprOp::kReciprocal, x);
  if (exponent == -2) return apply(ExprOp::kReciprocal, x * x);
  return std::nullopt;
}

OpDef pow_row() {
  OpDef row = binary("pow", "a to the power b");
  row.infer = [](const OpCall& call) {
    const DType dtype = promote(call, {0, 1});
    refuse_bool(dtype, "cast them to an integer dtype");
    const Operand& exponent = call.operands[1];
    if (is_integer(dtype) && exponent.kind == Operand::Kind::kNumber && exponent.number.integer < 0)
      fail(input_place(1), "integer to a negative power", std::to_string(exponent.number.integer), "0 or more",
           "cast the base to a float dtype");
    return broadcast_both(call, dtype);
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const DType dtype = f.output_type().dtype;
    const E base = load_operand(f, 0, i, dtype);
    if (f.operand(1).kind == Operand::Kind::kNumber)
      if (const auto simple = simple_power(f, base, f.operand(1).number.as_double())) return wrap(f, *simple, dtype);
    return wrap(f, apply(ExprOp::kPow, base, load_operand(f, 1, i, dtype)), dtype);
  };
  return row;
}

std::vector<OpDef> binary_arithmetic_rows() {
  const char* bools = "logical_and, logical_or and logical_xor work on bool";
  return {
      binary_arithmetic("add", "a + b; of bool: or",
                        [](Formula&, E a, E b) { return a.type() == ScalarType::kBool ? a || b : a + b; }),
      binary_arithmetic(
          "sub", "a - b", [](Formula&, E a, E b) { return a - b; }, bools),
      binary_arithmetic("mul", "a * b; of bool: and",
                        [](Formula&, E a, E b) { return a.type() == ScalarType::kBool ? a && b : a * b; }),
      div_row(),
      pow_row(),
      binary_arithmetic("maximum", "the greater one; NaN if either is",
                        [](Formula&, E a, E b) {
                          if (a.type() == ScalarType::kBool) return a || b;
                          return is_float_zero(a) ? at_least(b, a) : at_least(a, b);
                        }),
      binary_arithmetic("minimum", "the smaller one; NaN if either is",
                        [](Formula&, E a, E b) {
                          if (a.type() == ScalarType::kBool) return a && b;
                          return is_float_zero(a) ? at_most(b, a) : at_most(a, b);
                        }),
      binary_arithmetic(
          "remainder", "what is left of a divided by b, with b's sign",
          [](Formula&, E a, E b) {
            return is_float(a.type()) ? float_remainder(a, b) : apply(ExprOp::kFloorMod, a, b);
          },
          bools),
      binary_arithmetic(
          "fmod", "what is left of a divided by b, with a's sign",
          [](Formula&, E a, E b) { return apply(ExprOp::kFmod, a, b); }, bools),
      binary_floating("atan2", "the angle of the point (b, a)",
                      [](Formula&, E a, E b) { return apply(ExprOp::kAtan2, a, b); }),
  };
}

std::vector<OpDef> comparison_rows() {
  return {
      comparison("eq", "a == b", ExprOp::kEq),
      comparison("ne", "a != b", ExprOp::kNe),
      comparison("lt", "a < b", ExprOp::kLt),
      comparison("le", "a <= b", ExprOp::kLe),
      comparison("gt", "a > b", ExprOp::kGt),
      comparison("ge", "a >= b", ExprOp::kGe),
      logical("logical_and", "both are not 0", ExprOp::kAnd),
      logical("logical_or", "one of them is not 0", ExprOp::kOr),
      logical("logical_xor", "exactly one of them is not 0", ExprOp::kXor),
      bitwise("bitwise_and", "bits set in both", ExprOp::kAnd),
      bitwise("bitwise_or", "bits set in either", ExprOp::kOr),
      bitwise("bitwise_xor", "bits set in exactly one", ExprOp::kXor),
  };
}

OpDef prelu_row() {
  OpDef row = binary_floating("prelu", "x where positive, else slope * x; the slope broadcasts as NumPy has it",
                              [](Formula&, E x, E slope) { return select(x > 0.0, x, slope * x); });
  row.operands = {"x", "slope"};
  return row;
}

}  // namespace

std::vector<OpDef> binary_ops() {
  std::vector<OpDef> all = binary_arithmetic_rows();
  for (OpDef& row : comparison_rows()) all.push_back(std::move(row));
  all.push_back(prelu_row());
  return all;
}

}  // namespace fusec::ops
