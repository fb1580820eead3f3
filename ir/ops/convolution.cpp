// Convolutions and transposed convolutions of 1 to 3 spatial dimensions, with or without a batch dimension.
//
//   conv:            out[n, o, y] = sum over c, k of x[n, g*C + c, y*stride + k*dilation - padding] * w[o, c, k]
//   conv_transpose:  out[n, o, y] = sum over c, k of x[n, g*C + c, t/stride] * w[g*C + c, o % O, k]
//                    where t = y + padding - k*dilation is a multiple of the stride
// with C and O the channels of one group and g the group of o. Positions outside x are 0.
#include "ir/ops/matrix.h"
#include "ir/ops/positions.h"

namespace fusec::ops {
namespace {

using Index = std::span<const IndexExpr>;

struct Geometry {
  std::vector<std::int64_t> stride, dilation, output_padding;
  std::vector<Dim> before, after;  // padding on either side
  std::int64_t groups;
};

Geometry geometry_of(const Attributes& attributes, std::size_t spatial, const Shape& weight) {
  Geometry g;
  g.stride = per_dimension(attributes, "stride", spatial, 1);
  g.dilation = per_dimension(attributes, "dilation", spatial, 1);
  g.output_padding = per_dimension(attributes, "output_padding", spatial, 0);
  g.groups = attributes.integer("groups", 1);
  const AttributeValue* padding = attributes.find("padding");
  if (padding && std::holds_alternative<std::string>(*padding)) {
    const bool same = std::get<std::string>(*padding) == "same";
    for (std::size_t d = 0; d < spatial; ++d) {
      const Dim total = same ? Dim(g.dilation[d]) * (weight[2 + d] - 1) : Dim(0);
      g.before.push_back(floor_div(total, 2));
      g.after.push_back(total - g.before.back());
    }
  } else {
    for (const std::int64_t p : per_dimension(attributes, "padding", spatial, 0)) g.before.emplace_back(p);
    g.after = g.before;
  }
  return g;
}

// Checks the operands and attributes that both kinds share; returns the geometry.
Geometry checked_geometry(const OpCall& call, std::size_t spatial) {
  const TensorType& x = tensor_of_min_rank(call, 0, spatial + 1);
  if (x.rank() > spatial + 2) tensor_of_rank(call, 0, spatial + 2);
  const TensorType& weight = tensor_of_rank(call, 1, spatial + 2);
  if (x.dtype == DType::kBool) fail(input_place(0), "wrong dtype", "bool", "integers or floats");
  require_same_dtype(call, 1);
  if (call.has(2)) {
    require_same_dtype(call, 2);
    tensor_of_rank(call, 2, 1);
  }
  per_dimension(call, "stride", spatial, 1, 1);
  per_dimension(call, "dilation", spatial, 1, 1);
  per_dimension(call, "output_padding", spatial, 0, 0);
  const AttributeValue* padding = call.attributes.find("padding");
  if (!padding || !std::holds_alternative<std::string>(*padding)) per_dimension(call, "padding", spatial, 0, 0);
  if (call.attributes.integer("groups", 1) < 1)
    fail(attribute_place("groups"), "number of groups", std::to_string(call.attributes.integer("groups", 1)),
         "1 or more");
  Geometry g = geometry_of(call.attributes, spatial, weight.shape);
  const Bounds bounds{call.symbols, {}, {}};
  if (g.groups > 1 && range_of(weight.shape[0], bounds).max < g.groups)
    fail(attribute_place("groups"), "more groups than channels", std::to_string(g.groups),
         "at most " + to_string(weight.shape[0], call.symbols));
  if (padding && std::holds_alternative<std::string>(*padding) && std::get<std::string>(*padding) == "same")
    for (const std::int64_t s : g.stride)
      if (s != 1)
        fail(attribute_place("padding"), "padding \"same\" with a stride", std::to_string(s), "a stride of 1");
  return g;
}

std::vector<ValueType> infer_conv(const OpCall& call, std::size_t spatial) {
  const Geometry g = checked_geometry(call, spatial);
  const TensorType& x = call.tensor(0);
  const TensorType& weight = call.tensor(1);
  const std::size_t channel = x.rank() - spatial - 1;
  if (x.shape[channel].is_constant())
    require_divisible(call, x.shape[channel], g.groups, "the input channels of a convolution in groups",
                      input_place(0));
  require_equal(call, weight.shape[1] * g.groups, x.shape[channel], "the input channels of a convolution",
                input_place(0));
  require_divisible(call, weight.shape[0], g.groups, "the output channels of a convolution in groups", input_place(1));
  if (call.has(2))
    require_equal(call, weight.shape[0], call.tensor(2).shape[0], "the output channels of a convolution",
                  input_place(2));
  TensorType type{x.dtype, {x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(channel)}};
  type.shape.push_back(weight.shape[0]);
  for (std::size_t d = 0; d < spatial; ++d) {
    const Dim reach = Dim(g.dilation[d]) * (weight.shape[2 + d] - 1) + 1;
    const Dim padded = x.shape[channel + 1 + d] + g.before[d] + g.after[d];
    require_at_most(call, reach, padded, "the kernel of a convolution fits into its padded input", input_place(1));
    type.shape.push_back(simplify(floor_div(padded - reach, g.stride[d]) + 1, bounds_of(call)));
  }
  return {type};
}

// The first input channel of the group of output channel `o`.
IndexExpr first_input_channel(Formula& f, const IndexExpr& o, const Dim& outputs, const Dim& inputs,
                              std::int64_t groups) {
  if (groups == 1) return 0;
  return f.simplified(floor_div(o, outputs) * inputs);
}

ExprId conv_formula(Formula& f, Index index, std::size_t spatial) {
  const TensorType& x = f.type(0);
  const Shape& weight = f.type(1).shape;
  const Geometry g = geometry_of(f.attributes(), spatial, weight);
  const std::size_t channel = x.rank() - spatial - 1;
  const IndexExpr& o = index[channel];
  const IndexExpr first = first_input_channel(f, o, f.simplified(floor_div(weight[0], g.groups)), weight[1], g.groups);
  const ScalarType type = compute_type(x.dtype);
  E value = sum_over(f, {weight.begin() + 1, weight.end()}, [&](Index axes) {
    std::vector<IndexExpr> source(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(channel));
    std::vector<IndexExpr> kernel{o};
    source.push_back(first + axes[0]);
    kernel.push_back(axes[0]);
    E inside = f.boolean(true);
    for (std::size_t d = 0; d < spatial; ++d) {
      const IndexExpr position = index[channel + 1 + d] * g.stride[d] + axes[1 + d] * g.dilation[d] - g.before[d];
      inside = inside && f.inside(position, x.shape[channel + 1 + d]);
      source.push_back(position);
      kernel.push_back(axes[1 + d]);
    }
    return f.guarded(
               inside, [&] { return f.load(0, source); }, zero(f, type)) *
           f.load(1, kernel);
  });
  if (f.has(2)) value = value + f.load(2, {o});
  return wrap(f, value, x.dtype);
}

std::vector<ValueType> infer_conv_transpose(const OpCall& call, std::size_t spatial) {
  const Geometry g = checked_geometry(call, spatial);
  const TensorType& x = call.tensor(0);
  const TensorType& weight = call.tensor(1);
  const std::size_t channel = x.rank() - spatial - 1;
  require_equal(call, weight.shape[0], x.shape[channel], "the input channels of a transposed convolution",
                input_place(0));
  require_divisible(call, weight.shape[0], g.groups, "the input channels of a transposed convolution in groups",
                    input_place(1));
  const Dim outputs = weight.shape[1] * g.groups;
  if (call.has(2))
    require_equal(call, outputs, call.tensor(2).shape[0], "the output channels of a transposed convolution",
                  input_place(2));
  TensorType type{x.dtype, {x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(channel)}};
  type.shape.push_back(outputs);
  for (std::size_t d = 0; d < spatial; ++d) {
    if (g.output_padding[d] >= std::max(g.stride[d], g.dilation[d]))
      fail(attribute_place("output_padding"), "output_padding too large", std::to_string(g.output_padding[d]),
           "less than the stride or the dilation");
    const Dim full = (x.shape[channel + 1 + d] - 1) * g.stride[d] + Dim(g.dilation[d]) * (weight.shape[2 + d] - 1) + 1;
    const Dim size = simplify(full - g.before[d] - g.after[d] + g.output_padding[d], bounds_of(call));
    require_at_most(call, 0, size, "the output of a transposed convolution", attribute_place("padding"));
    type.shape.push_back(size);
  }
  return {type};
}

ExprId conv_transpose_formula(Formula& f, Index index, std::size_t spatial) {
  const TensorType& x = f.type(0);
  const Shape& weight = f.type(1).shape;
  const Geometry g = geometry_of(f.attributes(), spatial, weight);
  const std::size_t channel = x.rank() - spatial - 1;
  const IndexExpr& o = index[channel];
  const Dim inputs = f.simplified(floor_div(weight[0], g.groups));
  const IndexExpr first = first_input_channel(f, o, weight[1], inputs, g.groups);
  const IndexExpr in_group = g.groups == 1 ? o : f.simplified(floor_mod(o, weight[1]));
  std::vector<Dim> extents{inputs};
  extents.insert(extents.end(), weight.begin() + 2, weight.end());
  E value = sum_over(f, extents, [&](Index axes) {
    std::vector<IndexExpr> source(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(channel));
    std::vector<IndexExpr> kernel{first + axes[0], in_group};
    source.push_back(first + axes[0]);
    E meets = f.boolean(true);
    for (std::size_t d = 0; d < spatial; ++d) {
      const IndexExpr t = index[channel + 1 + d] + g.before[d] - axes[1 + d] * g.dilation[d];
      const IndexExpr position = f.simplified(floor_div(t, g.stride[d]));
      if (g.stride[d] != 1) meets = meets && f.less(f.simplified(floor_mod(t, g.stride[d])), 1);
      meets = meets && f.inside(position, x.shape[channel + 1 + d]);
      source.push_back(position);
      kernel.push_back(axes[1 + d]);
    }
    return f.guarded(
               meets, [&] { return f.load(0, source); }, zero(f, compute_type(x.dtype))) *
           f.load(1, kernel);
  });
  if (f.has(2)) value = value + f.load(2, {o});
  return wrap(f, value, x.dtype);
}

OpDef conv_row(std::size_t spatial, bool transposed) {
  using enum AttributeType;
  const std::string dims = std::to_string(spatial);
  OpDef row{.name = (transposed ? "conv_transpose" : "conv") + dims + "d", .family = "matrix"};
  row.summary = transposed ? "A transposed convolution (the gradient of a convolution) over " + dims + "-d positions."
                           : "A convolution over " + dims + "-d positions.";
  row.operands = {"x", "weight", "bias?"};
  row.attributes = {{"stride", kIntegers}, {"dilation", kIntegers}, {"groups", kInteger}};
  if (transposed) {
    row.attributes.push_back({"padding", kIntegers});
    row.attributes.push_back({"output_padding", kIntegers});
    row.infer = [spatial](const OpCall& call) { return infer_conv_transpose(call, spatial); };
    row.formula = [spatial](Formula& f, std::size_t, Index index) { return conv_transpose_formula(f, index, spatial); };
  } else {
    row.attributes.push_back({"padding", kIntegersOrText, false, {"same", "valid"}});
    row.infer = [spatial](const OpCall& call) { return infer_conv(call, spatial); };
    row.formula = [spatial](Formula& f, std::size_t, Index index) { return conv_formula(f, index, spatial); };
  }
  return row;
}

}  // namespace

std::vector<OpDef> convolution_ops() {
  std::vector<OpDef> rows;
  for (const bool transposed : {false, true})
    for (std::size_t spatial = 1; spatial <= 3; ++spatial) rows.push_back(conv_row(spatial, transposed));
  return rows;
}

}  // namespace fusec::ops
