// Elementwise ops of three operands, broadcast against each other.
#include <cmath>

#include "ir/ops/common.h"
#include "ir/ops/table.h"

namespace fusec::ops {
namespace {

OpDef ternary(std::string name, std::string summary, std::vector<std::string> operands) {
  OpDef row;
  row.name = std::move(name);
  row.family = "ternary";
  row.summary = std::move(summary);
  row.operands = std::move(operands);
  return row;
}

std::vector<ValueType> broadcast_all(const OpCall& call, DType dtype) {
  return {TensorType{dtype, broadcast_operands(call, {0, 1, 2})}};
}

// The attribute "value" as a factor; its integer part for integer dtypes.
E value_factor(Formula& f) {
  const DType dtype = f.output_type().dtype;
  const Scalar value = Scalar::floating(f.attributes().number("value", 1));
  return f.scalar(is_float(dtype) ? value : saturated(value, dtype), compute_type(dtype));
}

OpDef where_row() {
  OpDef row = ternary("where", "a where cond holds, else b", {"cond", "a", "b"});
  row.infer = [](const OpCall& call) {
    require_dtype(call, 0, {DType::kBool, DType::kUInt8});  // uint8 is PyTorch's former bool
    return broadcast_all(call, promote(call, {1, 2}));
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const DType dtype = f.output_type().dtype;
    return select(f.load_broadcast(0, i, ScalarType::kBool), load_operand(f, 1, i, dtype),
                  load_operand(f, 2, i, dtype));
  };
  return row;
}

// Uses a form that is exact at both ends: it starts from the nearer end.
OpDef lerp_row() {
  OpDef row = ternary("lerp", "start + weight * (end - start)", {"start", "end", "weight"});
  row.infer = [](const OpCall& call) {
    const DType dtype = promote(call, {0, 1, 2});
    if (!is_float(dtype)) fail("", "wrong dtype", std::string(name(dtype)) + " operands", "float operands");
    return broadcast_all(call, dtype);
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const DType dtype = f.output_type().dtype;
    const E start = load_operand(f, 0, i, dtype), end = load_operand(f, 1, i, dtype);
    const E weight = load_operand(f, 2, i, dtype);
    auto from_start = [&] { return start + weight * (end - start); };
    auto from_end = [&] { return end - (end - start) * (1.0 - weight); };
    if (f.operand(2).kind == Operand::Kind::kNumber)
      return std::abs(f.operand(2).number.as_double()) < 0.5 ? from_start() : from_end();
    return select(apply(ExprOp::kAbs, weight) < 0.5, from_start(), from_end());
  };
  return row;
}

OpDef addcmul_row() {
  OpDef row = ternary("addcmul", "x + value * t1 * t2", {"x", "t1", "t2"});
  row.attributes = {{"value", AttributeType::kNumber}};
  row.infer = [](const OpCall& call) {
    const DType dtype = promote(call, {0, 1, 2});
    if (dtype == DType::kBool) fail("", "wrong dtype", "bool operands", "integer or float operands");
    return broadcast_all(call, dtype);
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const DType dtype = f.output_type().dtype;
    const E x = load_operand(f, 0, i, dtype), t1 = load_operand(f, 1, i, dtype), t2 = load_operand(f, 2, i, dtype);
    return wrap(f, x + value_factor(f) * t1 * t2, dtype);
  };
  return row;
}

OpDef addcdiv_row() {
  OpDef row = ternary("addcdiv", "x + value * t1 / t2", {"x", "t1", "t2"});
  row.attributes = {{"value", AttributeType::kNumber}};
  row.infer = [](const OpCall& call) {
    if (!is_float(promote(call, {1, 2})))
      fail("", "integer division", "t1 and t2 of integers", "a float among them", "div has a rounding_mode");
    return broadcast_all(call, promote(call, {0, 1, 2}));
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const DType dtype = f.output_type().dtype;
    const E x = load_operand(f, 0, i, dtype), t1 = load_operand(f, 1, i, dtype), t2 = load_operand(f, 2, i, dtype);
    return x + value_factor(f) * t1 / t2;
  };
  return row;
}

}  // namespace

std::vector<OpDef> ternary_ops() {
  return {where_row(), lerp_row(), addcmul_row(), addcdiv_row()};
}

}  // namespace fusec::ops
