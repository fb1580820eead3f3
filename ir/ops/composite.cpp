// Softmax and the norms: a few reductions along a row, then an elementwise function of the element and their results.
//
// The statistics of a row use only the row's indices. They are therefore the same expression for every element of the
// row, and are computed once.
#include "ir/ops/common.h"
#include "ir/ops/mean.h"
#include "ir/ops/table.h"

namespace fusec::ops {
namespace {

OpDef composite(std::string name, std::string summary, std::vector<std::string> operands) {
  OpDef row;
  row.name = std::move(name);
  row.family = "composite";
  row.summary = std::move(summary);
  row.operands = std::move(operands);
  return row;
}

// --- softmax

std::vector<ValueType> softmax_type(const OpCall& call) {
  require_float(call, 0);
  dim_attribute(call, "dim", call.tensor(0).rank());
  return {call.tensor(0)};
}

struct SoftmaxRow {
  E shifted;  // x - max
  E total;    // sum of exp(x - max)
};

SoftmaxRow softmax_row(Formula& f, Formula::Index i) {
  const TensorType& x = f.operand(0).type.tensor;
  const ScalarType type = compute_type(x.dtype);
  const std::size_t dim = dim_attribute(f, "dim", x.rank());
  const std::vector<IndexExpr> extents = x.rank() == 0 ? std::vector<IndexExpr>{} : std::vector{x.shape[dim]};
  auto at = [&](Formula::Index k) {
    std::vector<IndexExpr> index(i.begin(), i.end());
    if (!k.empty()) index[dim] = k[0];
    return f.load(0, index, type);
  };
  const E greatest = f.reduce(Reduction::kMax, extents, at);
  const E total = f.sum(extents, [&](Formula::Index k) { return exp(at(k) - greatest); });
  return {f.load(0, i, type) - greatest, total};
}

std::vector<OpDef> softmax_rows() {
  OpDef softmax = composite("softmax", "exp(x) over its sum along dim, stable", {"x"});
  softmax.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const SoftmaxRow row = softmax_row(f, i);
    return exp(row.shifted) / row.total;
  };
  OpDef log_softmax = composite("log_softmax", "the logarithm of softmax, stable", {"x"});
  log_softmax.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const SoftmaxRow row = softmax_row(f, i);
    return row.shifted - log(row.total);
  };
  for (OpDef* row : {&softmax, &log_softmax}) {
    row->attributes = {{"dim", AttributeType::kInteger, true}};
    row->infer = softmax_type;
  }
  return {std::move(softmax), std::move(log_softmax)};
}

// --- norms

// One row of a norm: the extents that it averages over, and its elements.
struct NormRow {
  std::vector<IndexExpr> extents;
  std::function<E(Formula::Index)> at;

  E mean(Formula& f, const std::function<E(E)>& body) const {
    IndexExpr count = 1;
    for (const IndexExpr& e : extents) count *= e;
    const E total = f.sum(extents, [&](Formula::Index k) { return body(at(k)); });
    return total / f.convert(f.index(count), total.type());
  }
};

// (x - mean) / sqrt(var + eps), with the variance computed in a second pass over the row.
E standardized(Formula& f, E x, const NormRow& row, double eps) {
  const E mean = scaled_mean(f, f.type(0).dtype, row.extents, row.at);
  const E variance = row.mean(f, [&](E v) { return (v - mean) * (v - mean); });
  return (x - mean) * rsqrt(variance + eps);
}

// x * weight + bias; both are optional.
E affine(Formula& f, E x, std::size_t weight, std::size_t bias, Formula::Index index) {
  if (f.has(weight)) x = x * f.load(weight, index, x.type());
  if (f.has(bias)) x = x + f.load(bias, index, x.type());
  return x;
}

// Throws unless the operand is absent or a float tensor of this shape.
void require_parameter(const OpCall& call, std::size_t operand, const Shape& shape, const std::string& what) {
  if (!call.has(operand)) return;
  require_float(call, operand);
  require_equal_shapes(call, shape, call.tensor(operand).shape, what, input_place(operand));
}

// The type of layer_norm. normalized_shape must be the last dimensions of x and the shape of the parameters.
std::vector<ValueType> layer_norm_type(const OpCall& call) {
  require_float(call, 0);
  const TensorType& x = call.tensor(0);
  const Shape normalized = *call.attributes.dims("normalized_shape");
  const std::string place = attribute_place("normalized_shape");
  if (normalized.empty() || normalized.size() > x.rank())
    fail(place, "wrong number of dimensions", text_of(call, normalized), "1 to " + std::to_string(x.rank()));
  const Shape last(x.shape.end() - static_cast<std::ptrdiff_t>(normalized.size()), x.shape.end());
  require_equal_shapes(call, last, normalized, "normalized_shape and the last dimensions of x", place);
  for (const std::size_t parameter : {1, 2})
    require_parameter(call, parameter, last, "normalized_shape and the parameter's shape");
  return {x};
}

NormRow last_dimensions(Formula& f, Formula::Index i) {
  const TensorType& x = f.type(0);
  const std::size_t kept = x.rank() - f.attributes().dims("normalized_shape")->size();
  const std::vector<IndexExpr> outer(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(kept));
  return {{x.shape.begin() + static_cast<std::ptrdiff_t>(kept), x.shape.end()},
          [&f, outer, type = compute_type(x.dtype)](Formula::Index k) {
            std::vector<IndexExpr> index = outer;
            index.insert(index.end(), k.begin(), k.end());
            return f.load(0, index, type);
          }};
}

OpDef layer_norm_row() {
  OpDef row = composite("layer_norm", "x standardized over its last dimensions, times weight plus bias",
                        {"x", "weight?", "bias?"});
  row.attributes = {{"normalized_shape", AttributeType::kDims, true}, {"eps", AttributeType::kNumber}};
  row.infer = layer_norm_type;
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const NormRow norm = last_dimensions(f, i);
    const E x = f.load(0, i, compute_type(f.type(0).dtype));
    return affine(f, standardized(f, x, norm, f.attributes().number("eps", 1e-5)), 1, 2, i.last(norm.extents.size()));
  };
  return row;
}

OpDef rms_norm_row() {
  OpDef row = composite("rms_norm", "x over the root of its mean square over the last dimensions, times weight",
                        {"x", "weight?"});
  row.attributes = {{"normalized_shape", AttributeType::kDims, true}, {"eps", AttributeType::kNumber}};
  row.infer = layer_norm_type;
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const NormRow norm = last_dimensions(f, i);
    const ScalarType type = compute_type(f.type(0).dtype);
    // The default is the machine epsilon of the compute type, as in PyTorch.
    const double eps = f.attributes().number("eps", type == ScalarType::kFloat64 ? 0x1p-52 : 0x1p-23);
    const E square = norm.mean(f, [](E v) { return v * v; });
    return affine(f, f.load(0, i, type) * rsqrt(square + eps), 1, 2, i.last(norm.extents.size()));
  };
  return row;
}

// Checks x[N, C, ...] with parameters of shape [C].
void require_channels(const OpCall& call, std::size_t min_rank, std::initializer_list<std::size_t> parameters) {
  require_float(call, 0);
  const TensorType& x = tensor_of_min_rank(call, 0, min_rank);
  for (const std::size_t parameter : parameters)
    require_parameter(call, parameter, {x.shape[1]}, "the channels of x and the parameter's shape");
}

// The row of x[n, first : first + group, ...]: `group` channels from `first` on, with all their spatial positions.
NormRow channel_group(Formula& f, Formula::Index i, const IndexExpr& first, const IndexExpr& group) {
  const TensorType& x = f.type(0);
  std::vector<IndexExpr> extents{group};
  extents.insert(extents.end(), x.shape.begin() + 2, x.shape.end());
  return {extents, [&f, n = i[0], first, type = compute_type(x.dtype)](Formula::Index k) {
            std::vector<IndexExpr> index{n, first + k[0]};
            index.insert(index.end(), k.begin() + 1, k.end());
            return f.load(0, index, type);
          }};
}

OpDef group_norm_row() {
  OpDef row = composite("group_norm", "x[N, C, ...] standardized over each of num_groups groups of channels",
                        {"x", "weight?", "bias?"});
  row.attributes = {{"num_groups", AttributeType::kInteger, true}, {"eps", AttributeType::kNumber}};
  row.infer = [](const OpCall& call) -> std::vector<ValueType> {
    require_channels(call, 2, {1, 2});
    require_divisible(call, call.tensor(0).shape[1], call.attributes.integer("num_groups"),
                      "channels of x and num_groups", attribute_place("num_groups"));
    return {call.tensor(0)};
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const IndexExpr group = f.simplified(floor_div(f.type(0).shape[1], f.attributes().integer("num_groups")));
    const IndexExpr first = f.simplified(floor_div(i[1], group) * group);
    const E x = f.load(0, i, compute_type(f.type(0).dtype));
    const E y = standardized(f, x, channel_group(f, i, first, group), f.attributes().number("eps", 1e-5));
    return affine(f, y, 1, 2, i.subspan(1, 1));
  };
  return row;
}

OpDef instance_norm_row() {
  OpDef row = composite("instance_norm", "x[N, C, ...] standardized over the dimensions within each channel",
                        {"x", "weight?", "bias?"});
  row.attributes = {{"eps", AttributeType::kNumber}};
  row.infer = [](const OpCall& call) -> std::vector<ValueType> {
    require_channels(call, 3, {1, 2});
    return {call.tensor(0)};
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const TensorType& type = f.type(0);
    const NormRow row_of_channel{{type.shape.begin() + 2, type.shape.end()}, [&](Formula::Index k) {
                                   std::vector<IndexExpr> index{i[0], i[1]};
                                   index.insert(index.end(), k.begin(), k.end());
                                   return f.load(0, index, compute_type(type.dtype));
                                 }};
    const E x = f.load(0, i, compute_type(type.dtype));
    return affine(f, standardized(f, x, row_of_channel, f.attributes().number("eps", 1e-5)), 1, 2, i.subspan(1, 1));
  };
  return row;
}

OpDef batch_norm_row() {
  OpDef row = composite("batch_norm", "(x - running_mean) / sqrt(running_var + eps) * weight + bias, by channel",
                        {"x", "weight?", "bias?", "running_mean", "running_var"});
  row.attributes = {{"eps", AttributeType::kNumber}};
  row.infer = [](const OpCall& call) -> std::vector<ValueType> {
    tensor_operand(call, 3);
    tensor_operand(call, 4);
    require_channels(call, 2, {1, 2, 3, 4});
    return {call.tensor(0)};
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index i) -> ExprId {
    const ScalarType type = compute_type(f.type(0).dtype);
    const Formula::Index channel = i.subspan(1, 1);
    // Combine the factors that depend only on the channel, since many elements share them.
    E scale = rsqrt(f.load(4, channel, type) + f.attributes().number("eps", 1e-5));
    if (f.has(1)) scale = scale * f.load(1, channel, type);
    const E centred = f.load(0, i, type) - f.load(3, channel, type);
    return f.has(2) ? centred * scale + f.load(2, channel, type) : centred * scale;
  };
  return row;
}

}  // namespace

std::vector<OpDef> composite_ops() {
  std::vector<OpDef> all = softmax_rows();
  for (auto* row : {layer_norm_row, rms_norm_row, group_norm_row, instance_norm_row, batch_norm_row})
    all.push_back(row());
  return all;
}

}  // namespace fusec::ops
