// Gated linear units: activation(gate) * up. Gate and up are two operands, or one operand that holds them in its last
// dimension, concatenated or interleaved.
#include "ir/ops/clamp.h"
#include "ir/ops/common.h"
#include "ir/ops/table.h"

namespace fusec::ops {
namespace {

using Activation = std::function<E(Formula&, E)>;

std::vector<ValueType> gated_type(const OpCall& call) {
  const Attributes& attributes = call.attributes;
  if (call.has(1)) {
    for (const char* layout : {"swapped", "interleaved"})
      if (attributes.flag(layout, false))
        fail(attribute_place(layout), "attribute of the form with one operand", "two operands", "one operand");
    const DType dtype = promote(call, {0, 1});
    if (!is_float(dtype)) fail("", "wrong dtype", std::string(name(dtype)) + " operands", "float operands");
    return {TensorType{dtype, broadcast_operands(call, {0, 1})}};
  }
  require_float(call, 0);
  TensorType type = tensor_of_min_rank(call, 0, 1);
  type.shape.back() =
      require_divisible(call, type.shape.back(), 2, "last dimension of gate and up together", input_place(0));
  return {type};
}

struct GateAndUp {
  E gate, up;
};

GateAndUp operands_at(Formula& f, Formula::Index i) {
  const DType dtype = f.output_type().dtype;
  if (f.has(1)) return {load_operand(f, 0, i, dtype), load_operand(f, 1, i, dtype)};
  auto part = [&](int which) {
    std::vector<IndexExpr> index(i.begin(), i.end());
    if (f.attributes().flag("interleaved", false))
      index.back() = index.back() * 2 + which;
    else if (which == 1)
      index.back() += f.output_type().shape.back();
    return f.load(0, index);
  };
  const bool swapped = f.attributes().flag("swapped", false);
  return {part(swapped ? 1 : 0), part(swapped ? 0 : 1)};
}

OpDef gated(std::string name, std::string summary, std::vector<AttributeSpec> own, Activation activation) {
  OpDef row;
  row.name = std::move(name);
  row.family = "gated";
  row.summary = std::move(summary);
  row.operands = {"gate", "up?"};
  row.attributes = std::move(own);
  for (const char* flag : {"swapped", "interleaved"}) row.attributes.push_back({flag, AttributeType::kFlag});
  for (const char* number : {"limit", "up_offset"}) row.attributes.push_back({number, AttributeType::kNumber});
  row.infer = gated_type;
  row.formula = [activation = std::move(activation)](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    auto [gate, up] = operands_at(f, i);
    if (f.attributes().has("limit")) {
      const double limit = f.attributes().number("limit");
      gate = minimum(gate, f.number(limit, gate.type()));
      up = minimum(maximum(up, f.number(-limit, up.type())), f.number(limit, up.type()));
    }
    const double offset = f.attributes().number("up_offset", 0);
    return activation(f, gate) * (offset == 0 ? up : up + offset);
  };
  return row;
}

}  // namespace

std::vector<OpDef> gated_ops() {
  return {
      gated("swiglu", "gate * sigmoid(alpha * gate) * up", {{"alpha", AttributeType::kNumber}},
            [](Formula& f, E gate) { return gate * sigmoid(gate * f.attributes().number("alpha", 1)); }),
      gated("geglu", "gelu(gate) * up", {{"approximate", AttributeType::kText, false, {"none", "tanh"}}},
            [](Formula& f, E gate) { return gelu(gate, f.attributes().text("approximate", "none")); }),
      gated("reglu", "relu(gate) * up", {}, [](Formula&, E gate) { return relu(gate); }),
  };
}

}  // namespace fusec::ops
