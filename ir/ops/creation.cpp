// Tensors without tensor operands: full and arange.
#include <cmath>

#include "ir/float_formats.h"
#include "ir/ops/common.h"
#include "ir/ops/table.h"

namespace fusec::ops {
namespace {

OpDef creation(std::string name, std::string summary) {
  OpDef row;
  row.name = std::move(name);
  row.family = "creation";
  row.summary = std::move(summary);
  return row;
}

void require_in_range(const Scalar& value, DType dtype) {
  if (!is_integer(dtype)) return;
  const bool whole = value.category != Category::kFloat;
  const bool fits = whole ? saturated(value, dtype).integer == value.integer
                          : std::trunc(value.real) == static_cast<double>(saturated(value, dtype).integer);
  if (!fits)
    fail(attribute_place("value"), "value out of range",
         whole ? std::to_string(value.integer) : std::to_string(value.real), "a value of " + std::string(name(dtype)));
}

OpDef full_row() {
  OpDef row = creation("full", "a tensor of one value");
  row.attributes = {{"shape", AttributeType::kDims, true},
                    {"value", AttributeType::kScalar, true},
                    {"dtype", AttributeType::kDType, true}};
  row.infer = [](const OpCall& call) -> std::vector<ValueType> {
    const DType dtype = call.attributes.dtype("dtype");
    require_in_range(call.attributes.scalar("value"), dtype);
    const Shape shape = *call.attributes.dims("shape");
    for (const Dim& dim : shape)
      if (range_of(dim, bounds_of(call)).min < 0)
        fail(attribute_place("shape"), "negative dimension", text_of(call, dim), "0 or more");
    return {TensorType{dtype, shape}};
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index) -> ExprId {
    const DType dtype = f.output_type().dtype;
    const Scalar value = f.attributes().scalar("value");
    if (dtype == DType::kBool) return f.boolean(value.as_double() != 0);
    return f.round(f.scalar(value, compute_type(dtype)), dtype);
  };
  return row;
}

// An end of a range: a dimension expression, or a number with a fraction.
struct Bound {
  Dim whole;
  double real = 0;
  bool is_whole = true;
};

Bound bound(const Attributes& attributes, std::string_view name, std::int64_t otherwise) {
  const AttributeValue* value = attributes.find(name);
  if (!value) return {otherwise, static_cast<double>(otherwise)};
  if (const Dim* dim = std::get_if<Dim>(value)) return {*dim};
  const Scalar scalar = attributes.scalar(name);
  if (scalar.category != Category::kFloat) return {scalar.integer, static_cast<double>(scalar.integer)};
  const bool whole = scalar.real == std::trunc(scalar.real) && std::abs(scalar.real) < 0x1p53;
  return {whole ? Dim(static_cast<std::int64_t>(scalar.real)) : Dim(0), scalar.real, whole};
}

struct Span {
  Bound start, end, step;
  bool is_whole() const { return start.is_whole && end.is_whole && step.is_whole; }
};

Span span_of(const Attributes& attributes) {
  return {bound(attributes, "start", 0), bound(attributes, "end", 0), bound(attributes, "step", 1)};
}

// ceil((end - start) / step), which must not be negative.
Dim whole_length(const OpCall& call, const Span& span) {
  const auto step = span.step.whole.as_constant();
  if (!step || *step == 0)
    fail(attribute_place("step"), "step of a range", text_of(call, span.step.whole), "a number other than 0");
  const Bounds bounds = bounds_of(call);
  const Dim way = *step > 0 ? span.end.whole - span.start.whole : span.start.whole - span.end.whole;
  const Dim length = simplify(ceil_div(way, *step > 0 ? *step : -*step), bounds);
  const Range range = range_of(length, bounds);
  if (range.max < 0)
    fail(attribute_place("end"), "end of a range", text_of(call, span.end.whole),
         std::string("an end ") + (*step > 0 ? "at or after " : "at or before ") + text_of(call, span.start.whole));
  return range.min >= 0 ? length : simplify(max(length, 0), bounds);
}

Dim real_length(const Span& span) {
  for (const auto* b : {&span.start, &span.end, &span.step})
    if (b->is_whole && !b->whole.is_constant())
      fail(attribute_place("step"), "range of a dimension and a fraction", "both", "whole numbers beside dimensions");
  const double step = span.step.real;
  if (step == 0 || !std::isfinite(step))
    fail(attribute_place("step"), "step of a range", std::to_string(step), "a number other than 0");
  const double length = std::ceil((span.end.real - span.start.real) / step);
  if (!(length >= 0) || length > 0x1p62)
    fail(attribute_place("end"), "end of a range", std::to_string(span.end.real), "an end that the steps reach");
  return static_cast<std::int64_t>(length);
}

OpDef arange_row() {
  OpDef row = creation("arange", "start, start + step, ... up to and without end");
  row.attributes = {{"start", AttributeType::kScalarOrDim},
                    {"end", AttributeType::kScalarOrDim, true},
                    {"step", AttributeType::kScalarOrDim},
                    {"dtype", AttributeType::kDType, true}};
  row.infer = [](const OpCall& call) -> std::vector<ValueType> {
    const DType dtype = call.attributes.dtype("dtype");
    if (dtype == DType::kBool) fail(attribute_place("dtype"), "wrong dtype", "bool", "an integer or float dtype");
    const Span span = span_of(call.attributes);
    return {TensorType{dtype, {span.is_whole() ? whole_length(call, span) : real_length(span)}}};
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const DType dtype = f.output_type().dtype;
    const ScalarType type = compute_type(dtype);
    const Span span = span_of(f.attributes());
    // Whole numbers use exact index arithmetic.
    if (span.start.is_whole && span.step.is_whole)
      return f.round(f.convert(f.index(span.start.whole + i[0] * span.step.whole), type), dtype);
    const ScalarType real = type == ScalarType::kFloat64 ? type : ScalarType::kFloat32;
    if (!is_float(dtype)) {  // PyTorch truncates the bounds first
      const std::int64_t start = truncate_to_integer(DType::kInt64, span.start.real);
      const std::int64_t step = truncate_to_integer(DType::kInt64, span.step.real);
      return f.round(f.convert(f.index(start + i[0] * step), type), dtype);
    }
    const E position = f.convert(f.index(i[0]), real);
    return f.round(f.number(span.start.real, real) + position * span.step.real, dtype);
  };
  return row;
}

}  // namespace

std::vector<OpDef> creation_ops() {
  return {full_row(), arange_row()};
}

}  // namespace fusec::ops
