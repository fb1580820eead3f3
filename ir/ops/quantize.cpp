// quantize and dequantize: floats to narrow integers or narrow floats by a scale, and back. Scales and zero points are
// per tensor, per index of an axis, per block of an axis, or broadcast.
#include <cmath>

#include "ir/error.h"
#include "ir/ops/common.h"
#include "ir/ops/table.h"

namespace fusec::ops {
namespace {

// How a scale maps to the tensor's elements.
enum class Spread : std::uint8_t { kOne, kAxis, kBlocks, kBroadcast };

std::size_t axis_of(const Attributes& attributes, std::size_t rank) {
  return normalize_dim(attributes.integer("axis", -1), rank, attribute_place("axis"));
}

std::optional<Spread> spread_of(const Attributes& attributes, const TensorType& x, const TensorType& scale) {
  if (scale.rank() == 0 || (scale.rank() == 1 && scale.shape[0].is(1))) return Spread::kOne;
  if (attributes.has("block")) return scale.rank() == x.rank() ? std::optional(Spread::kBlocks) : std::nullopt;
  if (scale.rank() == 1) return Spread::kAxis;
  return scale.rank() == x.rank() ? std::optional(Spread::kBroadcast) : std::nullopt;
}

// Checks that a scale or zero point, `operand`, has a shape that fits operand 0.
void require_spread(const OpCall& call, std::size_t operand) {
  const TensorType& x = call.tensor(0);
  const TensorType& scale = tensor_operand(call, operand);
  const std::string place = input_place(operand);
  const auto spread = spread_of(call.attributes, x, scale);
  if (!spread)
    fail(place, "wrong rank", to_string(scale, call.symbols),
         "one element, or rank " + std::to_string(x.rank()) + (call.attributes.has("block") ? "" : ", or rank 1"));
  const std::size_t axis = axis_of(call.attributes, x.rank());
  switch (*spread) {
    case Spread::kOne:
      break;
    case Spread::kAxis:
      if (x.rank() == 0) fail(place, "wrong rank", to_string(scale, call.symbols), "one element");
      require_equal(call, x.shape[axis], scale.shape[0], "the axis of x and the scale's dimension", place);
      break;
    case Spread::kBlocks:
      for (std::size_t d = 0; d < x.rank(); ++d)
        require_equal(call, x.shape[d], d == axis ? scale.shape[d] * call.attributes.integer("block") : scale.shape[d],
                      "x's dimension " + std::to_string(d) + " and what the scales cover", place);
      break;
    case Spread::kBroadcast:
      require_broadcastable(call, operand, x.shape);
      break;
  }
}

void require_scales(const OpCall& call) {
  if (call.attributes.has("block") && call.attributes.integer("block") <= 0)
    fail(attribute_place("block"), "attribute out of range", std::to_string(call.attributes.integer("block")),
         "1 or more");
  require_float(call, 1);
  require_spread(call, 1);
  if (!call.has(2)) return;
  if (tensor_operand(call, 2).dtype == DType::kBool)
    fail(input_place(2), "wrong dtype", "bool", "an integer or float dtype");
  require_spread(call, 2);
}

// The scale or zero point of the element at i, in float32, the type of all arithmetic here.
E load_spread(Formula& f, std::size_t operand, Formula::Index i) {
  const TensorType& x = f.operand(0).type.tensor;
  const TensorType& scale = f.operand(operand).type.tensor;
  const std::size_t axis = axis_of(f.attributes(), x.rank());
  switch (*spread_of(f.attributes(), x, scale)) {
    case Spread::kOne:
      return f.load(operand, std::vector<IndexExpr>(scale.rank(), IndexExpr(0)), ScalarType::kFloat32);
    case Spread::kAxis:
      return f.load(operand, {&i[axis], 1}, ScalarType::kFloat32);
    case Spread::kBlocks: {
      std::vector<IndexExpr> index(i.begin(), i.end());
      index[axis] = f.simplified(floor_div(index[axis], f.attributes().integer("block")));
      return f.load(operand, index, ScalarType::kFloat32);
    }
    case Spread::kBroadcast:
      return f.load_broadcast(operand, i, ScalarType::kFloat32);
  }
  throw InternalError("unknown spread of scales");
}

struct RealRange {
  double min, max;
};

// The saturation bounds of the dtype as float32 values that convert to the dtype exactly.
RealRange range_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat8E4M3FN:
      return {-448, 448};
    case DType::kFloat8E5M2:
      return {-57344, 57344};
    case DType::kFloat8E8M0FNU:
      return {0x1p-127, 0x1p127};
    case DType::kFloat4E2M1FN:
      return {-6, 6};
    default:
      break;
  }
  const IntegerRange whole = integer_range(dtype);
  float max = static_cast<float>(whole.max);
  if (bits(dtype) >= 32) max = std::nextafter(max, 0.0f);  // the greatest value would round up, out of range
  return {static_cast<double>(whole.min), static_cast<double>(max)};
}

OpDef quantized(std::string name, std::string summary, std::string operand) {
  OpDef row;
  row.name = std::move(name);
  row.family = "quantized";
  row.summary = std::move(summary);
  row.operands = {std::move(operand), "scale", "zero_point?"};
  row.attributes = {
      {"dtype", AttributeType::kDType, true}, {"axis", AttributeType::kInteger}, {"block", AttributeType::kInteger}};
  return row;
}

OpDef quantize_row() {
  OpDef row = quantized("quantize", "x / scale to the nearest value of dtype, plus zero_point, saturated", "x");
  row.infer = [](const OpCall& call) -> std::vector<ValueType> {
    require_float(call, 0);
    require_scales(call);
    const DType to = call.attributes.dtype("dtype");
    if (to == DType::kBool || (is_float(to) && bits(to) > 8))
      fail(attribute_place("dtype"), "wrong dtype", std::string(name(to)),
           "an integer dtype or a float of 8 bits or 4");
    return {TensorType{to, call.tensor(0).shape}};
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const DType to = f.output_type().dtype;
    E q = f.load(0, i, ScalarType::kFloat32) / load_spread(f, 1, i);
    if (is_integer(to)) q = apply(ExprOp::kRoundEven, q);
    if (f.has(2)) q = q + load_spread(f, 2, i);
    const RealRange range = range_of(to);
    q = minimum(maximum(q, f.number(range.min)), f.number(range.max));
    return f.round(f.convert(q, compute_type(to)), to);
  };
  return row;
}

OpDef dequantize_row() {
  OpDef row = quantized("dequantize", "(q - zero_point) * scale", "q");
  row.infer = [](const OpCall& call) -> std::vector<ValueType> {
    if (tensor_operand(call, 0).dtype == DType::kBool)
      fail(input_place(0), "wrong dtype", "bool", "an integer or float dtype");
    require_scales(call);
    const DType to = call.attributes.dtype("dtype");
    if (!is_float(to)) fail(attribute_place("dtype"), "wrong dtype", std::string(name(to)), "a float dtype");
    return {TensorType{to, call.tensor(0).shape}};
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    E x = f.load(0, i, ScalarType::kFloat32);
    if (f.has(2)) x = x - load_spread(f, 2, i);
    return f.convert(x * load_spread(f, 1, i), compute_type(f.output_type().dtype));
  };
  return row;
}

}  // namespace

std::vector<OpDef> quantize_ops() {
  return {quantize_row(), dequantize_row()};
}

}  // namespace fusec::ops
