// Elementwise ops of one operand: arithmetic, transcendental functions, activations, predicates, cast.
#include "ir/error.h"
#include "ir/ops/clamp.h"
#include "ir/ops/common.h"
#include "ir/ops/table.h"

namespace fusec::ops {
namespace {

using UnaryBody = std::function<E(Formula&, E)>;

std::vector<ValueType> like_operand(const OpCall& call, DType dtype) {
  return {TensorType{dtype, tensor_operand(call, 0).shape}};
}

void refuse_bool_operand(const OpCall& call) {
  if (tensor_operand(call, 0).dtype == DType::kBool)
    fail(input_place(0), "wrong dtype", "bool", "an integer or float dtype", "logical_not works on bool");
}

OpDef unary(std::string name, std::string summary) {
  OpDef row;
  row.name = std::move(name);
  row.family = "unary";
  row.summary = std::move(summary);
  row.operands = {"x"};
  return row;
}

// An op with a result of the operand's dtype; integers wrap at their own width.
OpDef unary_arithmetic(std::string name, std::string summary, UnaryBody body, bool allows_bool = false) {
  OpDef row = unary(std::move(name), std::move(summary));
  row.infer = [allows_bool](const OpCall& call) {
    if (!allows_bool) refuse_bool_operand(call);
    return like_operand(call, tensor_operand(call, 0).dtype);
  };
  row.formula = [body = std::move(body)](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    return wrap(f, body(f, f.load(0, i)), f.output_type().dtype);
  };
  return row;
}

// An op with a float result; float32 for integers.
OpDef unary_floating(std::string name, std::string summary, UnaryBody body) {
  OpDef row = unary(std::move(name), std::move(summary));
  row.infer = [](const OpCall& call) { return like_operand(call, float_dtype(tensor_operand(call, 0).dtype)); };
  row.formula = [body = std::move(body)](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    return body(f, f.load(0, i, compute_type(f.output_type().dtype)));
  };
  return row;
}

OpDef unary_floating(std::string name, std::string summary, ExprOp op) {
  return unary_floating(std::move(name), std::move(summary), [op](Formula&, E x) { return apply(op, x); });
}

OpDef predicate(std::string name, std::string summary, UnaryBody body) {
  OpDef row = unary(std::move(name), std::move(summary));
  row.infer = [](const OpCall& call) { return like_operand(call, DType::kBool); };
  row.formula = [body = std::move(body)](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    return body(f, f.load(0, i));
  };
  return row;
}

OpDef with_attributes(OpDef row, std::vector<AttributeSpec> attributes) {
  row.attributes = std::move(attributes);
  return row;
}

// floor, ceil, round, trunc; integers stay unchanged.
UnaryBody rounding(ExprOp op) {
  return [op](Formula&, E x) { return is_float(x.type()) ? apply(op, x) : x; };
}

E clamped(E x, double low, double high, Formula& f) {
  return at_most(at_least(x, f.number(low, x.type())), f.number(high, x.type()));
}

// Clamps x. For integer dtypes the bounds are truncated and clamped to the dtype's range.
E bounded(Formula& f, E x, const std::optional<Scalar>& low, const std::optional<Scalar>& high) {
  const DType dtype = f.output_type().dtype;
  auto bound = [&](const Scalar& s) { return f.scalar(is_float(dtype) ? s : saturated(s, dtype), x.type()); };
  if (low) x = at_least(x, bound(*low));
  if (high) x = at_most(x, bound(*high));
  return x;
}

E sign(Formula& f, E x) {
  if (x.type() == ScalarType::kBool) return x;
  return f.convert(x > 0.0, x.type()) - f.convert(x < 0.0, x.type());
}

// log(1 + exp(x)); infinite if exp(x) overflows.
E softplus(E x) {
  return apply(ExprOp::kLog1p, exp(x));
}

std::vector<OpDef> unary_arithmetic_rows() {
  return {
      unary_arithmetic("neg", "-x", [](Formula&, E x) { return -x; }),
      unary_arithmetic("abs", "|x|", [](Formula&, E x) { return apply(ExprOp::kAbs, x); }),
      unary_arithmetic("sign", "-1, 0 or 1; 0 for NaN", sign, true),
      unary_arithmetic("floor", "x rounded down", rounding(ExprOp::kFloor)),
      unary_arithmetic("ceil", "x rounded up", rounding(ExprOp::kCeil)),
      unary_arithmetic("round", "x rounded to the nearest integer, halves to even", rounding(ExprOp::kRoundEven)),
      unary_arithmetic("trunc", "x rounded towards 0", rounding(ExprOp::kTrunc)),
      unary_arithmetic("relu", "max(x, 0)", [](Formula&, E x) { return relu(x); }),
      unary_arithmetic("relu6", "min(max(x, 0), 6)", [](Formula& f, E x) { return clamped(x, 0, 6, f); }),
      with_attributes(unary_arithmetic("hardtanh", "x clamped to [min_val, max_val]",
                                       [](Formula& f, E x) {
                                         const Attributes& a = f.attributes();
                                         return bounded(f, x, Scalar::floating(a.number("min_val", -1)),
                                                        Scalar::floating(a.number("max_val", 1)));
                                       }),
                      {{"min_val", AttributeType::kNumber}, {"max_val", AttributeType::kNumber}}),
  };
}

std::vector<OpDef> transcendental_rows() {
  return {
      unary_floating("exp", "e to the x", ExprOp::kExp),
      unary_floating("exp2", "2 to the x", ExprOp::kExp2),
      unary_floating("expm1", "exp(x) - 1, exact near 0", ExprOp::kExpm1),
      unary_floating("log", "natural logarithm", ExprOp::kLog),
      unary_floating("log2", "logarithm to base 2", ExprOp::kLog2),
      unary_floating("log10", "logarithm to base 10", ExprOp::kLog10),
      unary_floating("log1p", "log(1 + x), exact near 0", ExprOp::kLog1p),
      unary_floating("sqrt", "square root", ExprOp::kSqrt),
      unary_floating("rsqrt", "1 / sqrt(x)", ExprOp::kRsqrt),
      unary_floating("reciprocal", "1 / x", ExprOp::kReciprocal),
      unary_floating("sin", "sine", ExprOp::kSin),
      unary_floating("cos", "cosine", ExprOp::kCos),
      unary_floating("tan", "tangent", ExprOp::kTan),
      unary_floating("asin", "inverse sine", ExprOp::kAsin),
      unary_floating("acos", "inverse cosine", ExprOp::kAcos),
      unary_floating("atan", "inverse tangent", ExprOp::kAtan),
      unary_floating("sinh", "hyperbolic sine", ExprOp::kSinh),
      unary_floating("cosh", "hyperbolic cosine", ExprOp::kCosh),
      unary_floating("tanh", "hyperbolic tangent", ExprOp::kTanh),
      unary_floating("asinh", "inverse hyperbolic sine", ExprOp::kAsinh),
      unary_floating("acosh", "inverse hyperbolic cosine", ExprOp::kAcosh),
      unary_floating("atanh", "inverse hyperbolic tangent", ExprOp::kAtanh),
      unary_floating("erf", "error function", ExprOp::kErf),
      unary_floating("sigmoid", "1 / (1 + exp(-x))", ExprOp::kSigmoid),
  };
}

std::vector<OpDef> activation_rows() {
  constexpr double kSeluScale = 1.0507009873554804934193349852946;
  constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
  return {
      unary_floating("silu", "x * sigmoid(x)", [](Formula&, E x) { return x * sigmoid(x); }),
      with_attributes(
          unary_floating("gelu", "x times the normal distribution function of x",
                         [](Formula& f, E x) { return gelu(x, f.attributes().text("approximate", "none")); }),
          {{"approximate", AttributeType::kText, false, {"none", "tanh"}}}),
      with_attributes(unary_floating("leaky_relu", "x where positive, else negative_slope * x",
                                     [](Formula& f, E x) {
                                       return select(x > 0.0, x, x * f.attributes().number("negative_slope", 0.01));
                                     }),
                      {{"negative_slope", AttributeType::kNumber}}),
      with_attributes(unary_floating("elu", "x where positive, else alpha * (exp(x) - 1)",
                                     [](Formula& f, E x) {
                                       return select(x > 0.0, x,
                                                     apply(ExprOp::kExpm1, x) * f.attributes().number("alpha", 1));
                                     }),
                      {{"alpha", AttributeType::kNumber}}),
      unary_floating("selu", "self-normalizing elu",
                     [](Formula&, E x) {
                       return select(x > 0.0, x * kSeluScale, apply(ExprOp::kExpm1, x) * (kSeluScale * kSeluAlpha));
                     }),
      with_attributes(unary_floating("softplus", "log(1 + exp(beta * x)) / beta; x where beta * x exceeds threshold",
                                     [](Formula& f, E x) {
                                       const double beta = f.attributes().number("beta", 1);
                                       const E scaled = x * beta;
                                       return select(scaled > f.attributes().number("threshold", 20), x,
                                                     softplus(scaled) / beta);
                                     }),
                      {{"beta", AttributeType::kNumber}, {"threshold", AttributeType::kNumber}}),
      unary_floating("mish", "x * tanh(softplus(x))", [](Formula&, E x) { return x * tanh(softplus(x)); }),
      unary_floating("hardswish", "x * relu6(x + 3) / 6",
                     [](Formula& f, E x) { return x * clamped(x + 3.0, 0, 6, f) / 6.0; }),
      unary_floating("hardsigmoid", "relu6(x + 3) / 6",
                     [](Formula& f, E x) { return clamped(x + 3.0, 0, 6, f) / 6.0; }),
      unary_floating(
          "log_sigmoid", "log(sigmoid(x)), stable",
          [](Formula& f, E x) { return minimum(x, f.number(0, x.type())) - softplus(-apply(ExprOp::kAbs, x)); }),
  };
}

// PyTorch defines square as pow(x, 2); the result for bool is int64.
OpDef square_row() {
  OpDef row = unary("square", "x * x");
  row.infer = [](const OpCall& call) {
    const DType dtype = tensor_operand(call, 0).dtype;
    return like_operand(call, dtype == DType::kBool ? DType::kInt64 : dtype);
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const E x = f.load(0, i, compute_type(f.output_type().dtype));
    return wrap(f, x * x, f.output_type().dtype);
  };
  return row;
}

OpDef bitwise_not_row() {
  OpDef row = unary("bitwise_not", "all bits flipped; the logical complement of bool");
  row.infer = [](const OpCall& call) {
    const DType dtype = tensor_operand(call, 0).dtype;
    if (is_float(dtype)) fail(input_place(0), "wrong dtype", std::string(name(dtype)), "bool or an integer dtype");
    return like_operand(call, dtype);
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const E x = f.load(0, i);
    return x.type() == ScalarType::kBool ? !x : wrap(f, apply(ExprOp::kBitNot, x), f.output_type().dtype);
  };
  return row;
}

// The bounds take part in promotion as numbers do: an integer tensor clamped at 0.5 becomes float32.
OpDef clamp_row() {
  OpDef row = unary("clamp", "min(max(x, min), max)");
  row.attributes = {{"min", AttributeType::kScalar}, {"max", AttributeType::kScalar}};
  row.infer = [](const OpCall& call) {
    tensor_operand(call, 0);
    std::vector<Operand> all{call.operands[0]};
    for (const char* bound : {"min", "max"})
      if (call.attributes.has(bound)) all.push_back(number_operand(call.attributes.scalar(bound)));
    if (all.size() == 1) fail("", "clamp without bounds", "neither min nor max", "at least one of min and max");
    const DType dtype = promote(all);
    if (dtype == DType::kBool) refuse_bool_operand(call);
    return like_operand(call, dtype);
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const ScalarType type = compute_type(f.output_type().dtype);
    auto given = [&](const char* bound) {
      return f.attributes().has(bound) ? std::optional(f.attributes().scalar(bound)) : std::nullopt;
    };
    return bounded(f, f.load(0, i, type), given("min"), given("max"));
  };
  return row;
}

OpDef cast_row() {
  OpDef row = unary("cast", "x converted to dtype");
  row.attributes = {{"dtype", AttributeType::kDType, true}};
  row.infer = [](const OpCall& call) { return like_operand(call, call.attributes.dtype("dtype")); };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const DType to = f.output_type().dtype;
    const E x = f.load(0, i);
    if (f.operand(0).kind == Operand::Kind::kTensor && f.type(0).dtype == to) return x;
    E y = f.convert(x, compute_type(to));
    // PyTorch saturates only for float8_e4m3fn, since float8_e5m2 has infinities.
    if (to == DType::kFloat8E4M3FN) y = clamped(y, -448, 448, f);
    return f.round(y, to);
  };
  return row;
}

OpDef identity_row() {
  OpDef row = unary("identity", "x");
  row.view = true;
  row.infer = [](const OpCall& call) { return like_operand(call, tensor_operand(call, 0).dtype); };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId { return f.load(0, i); };
  return row;
}

std::vector<OpDef> other_rows() {
  return {
      square_row(),
      predicate("logical_not", "true where x is 0", [](Formula&, E x) { return !x; }),
      bitwise_not_row(),
      predicate("isnan", "true where x is NaN",
                [](Formula& f, E x) { return is_float(x.type()) ? apply(ExprOp::kIsNan, x) : f.boolean(false); }),
      predicate("isinf", "true where x is infinite",
                [](Formula& f, E x) { return is_float(x.type()) ? apply(ExprOp::kIsInf, x) : f.boolean(false); }),
      clamp_row(),
      cast_row(),
      identity_row(),
  };
}

}  // namespace

std::vector<OpDef> unary_ops() {
  std::vector<OpDef> all;
  for (auto* rows : {unary_arithmetic_rows, transcendental_rows, activation_rows, other_rows})
    for (OpDef& row : rows()) all.push_back(std::move(row));
  return all;
}

}  // namespace fusec::ops
