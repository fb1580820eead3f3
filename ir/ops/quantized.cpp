// Linear layers on quantized operands, and the grouped matrix product of mixture-of-experts layers. Scales that are
// constant along K multiply the accumulator; other scales multiply the weight before the product.
#include "ir/ops/matrix.h"
#include "ir/ops/positions.h"
#include "ir/ops/table.h"

namespace fusec::ops {
namespace {

using Index = std::span<const IndexExpr>;
constexpr ScalarType kFloat = ScalarType::kFloat32;

// --- shared by the linear layers

struct LinearSizes {
  Dim rows, columns, inner;  // M, N, K
};

// Checks x[.., K], operand 0, and the weight [N, K], operand 1.
LinearSizes linear_shapes(const OpCall& call) {
  const TensorType& x = tensor_of_min_rank(call, 0, 1);
  const TensorType& weight = tensor_of_rank(call, 1, 2);
  require_equal(call, x.shape.back(), weight.shape[1], "the inner dimensions of a product", input_place(1));
  const Shape leading(x.shape.begin(), x.shape.end() - 1);
  const auto rows = element_count(leading);
  if (!rows) fail(input_place(0), "element count overflows 63 bits");
  return {*rows, weight.shape[0], weight.shape[1]};
}

TensorType linear_result(const OpCall& call) {
  const DType dtype = call.attributes.dtype("out_dtype");
  if (!is_float(dtype)) fail(attribute_place("out_dtype"), "wrong dtype", std::string(name(dtype)), "a float dtype");
  TensorType type{dtype, call.tensor(0).shape};
  type.shape.back() = call.tensor(1).shape[0];
  return type;
}

// Checks a scale: one element (rank 0 or 1), or one for each of `count` rows or columns.
void require_scale(const OpCall& call, std::size_t operand, const std::optional<Dim>& count) {
  require_float(call, operand);
  const TensorType& type = call.tensor(operand);
  if (type.rank() == 0 || (type.rank() == 1 && type.shape[0].is(1))) return;
  const std::string expected = count ? "shape [1] or [" + text_of(call, *count) + "]" : "one element";
  if (type.rank() > 1 || !count || proves_different(*count, type.shape[0], bounds_of(call)))
    fail(input_place(operand), "wrong shape of a scale", text_of(call, type.shape), expected);
  require_equal(call, *count, type.shape[0], "a scale and the dimension it is for", input_place(operand));
}

// Checks an optional offset of one element, which is subtracted from quantized values.
void require_offset(const OpCall& call, std::size_t operand) {
  if (!call.has(operand)) return;
  const TensorType& type = tensor_operand(call, operand);
  if (!is_integer(type.dtype))
    fail(input_place(operand), "wrong dtype of an offset", std::string(name(type.dtype)), "int8");
  if (type.rank() > 1 || (type.rank() == 1 && !type.shape[0].is(1)))
    fail(input_place(operand), "wrong shape of an offset", text_of(call, type.shape), "one element");
}

void require_bias(const OpCall& call, std::size_t operand, const Dim& columns) {
  if (!call.has(operand)) return;
  require_float(call, operand);
  const TensorType& type = tensor_of_rank(call, operand, 1);
  require_equal(call, columns, type.shape[0], "the output channels and the bias", input_place(operand));
}

// The value of a scale, offset or bias of rank 0 or 1 at position i; one element serves every position.
E at_position(Formula& f, std::size_t operand, const IndexExpr& i, ScalarType type) {
  const Shape& shape = f.type(operand).shape;
  if (shape.empty()) return f.load(operand, Index(), type);
  const std::vector<IndexExpr> position{shape[0].is(1) ? IndexExpr(0) : i};
  return f.load(operand, position, type);
}

// x[row, k], with the row of the output index (all but its last entry).
E load_row(Formula& f, Index index, const IndexExpr& k) {
  std::vector<IndexExpr> own(index.begin(), index.end());
  own.back() = k;
  return f.load(0, own);
}

// The row number in x flattened to [M, K].
IndexExpr row_number(Formula& f, Index index) {
  const Shape& shape = f.output_type().shape;
  return flat_index({shape.begin(), shape.end() - 1}, index.first(index.size() - 1));
}

E plus_bias(Formula& f, E value, std::size_t operand, const IndexExpr& column) {
  return f.has(operand) ? value + at_position(f, operand, column, kFloat) : value;
}

// --- static_quant_linear(x, w, w_scale, x_scale, x_offset?, bias?)

std::vector<ValueType> infer_static_quant(const OpCall& call) {
  const LinearSizes linear = linear_shapes(call);
  require_dtype(call, 0, {DType::kInt8});
  require_dtype(call, 1, {DType::kInt8});
  require_scale(call, 2, linear.columns);
  require_scale(call, 3, std::nullopt);
  require_offset(call, 4);
  require_bias(call, 5, linear.columns);
  return {linear_result(call)};
}

ExprId static_quant_formula(Formula& f, std::size_t, Index index) {
  const IndexExpr& n = index.back();
  const E product = sum_over(f, {f.type(1).shape[1]}, [&](Index k) {
    E x = load_row(f, index, k[0]);
    if (f.has(4)) x = x - at_position(f, 4, 0, ScalarType::kInt32);
    return x * f.load(1, {n, k[0]});
  });
  const E scaled = f.convert(product, kFloat) * at_position(f, 3, 0, kFloat) * at_position(f, 2, n, kFloat);
  return plus_bias(f, scaled, 5, n);
}

// --- static_quant_linear_int4(x, w, w_scale, w_offset?, x_scale, x_offset?, bias?)

std::vector<ValueType> infer_static_quant_int4(const OpCall& call) {
  const LinearSizes linear = linear_shapes(call);
  require_dtype(call, 0, {DType::kInt8});
  require_dtype(call, 1, {DType::kInt4});
  const std::int64_t group = call.attributes.integer("group_size");
  if (group < 1) fail(attribute_place("group_size"), "size of a group", std::to_string(group), "1 or more");
  const Dim groups = require_divisible(call, linear.inner, group, "the groups of the inner dimension", input_place(1));
  for (const std::size_t operand : {2, 3}) {
    if (operand == 3 && !call.has(3)) continue;
    const Shape& shape = tensor_of_rank(call, operand, 2).shape;
    require_equal(call, linear.columns, shape[0], "the output channels and their scales", input_place(operand));
    require_equal(call, groups, shape[1], "the groups and their scales", input_place(operand));
  }
  require_float(call, 2);
  if (call.has(3) && !is_integer(call.tensor(3).dtype))
    fail(input_place(3), "wrong dtype of an offset", std::string(name(call.tensor(3).dtype)), "int8");
  require_scale(call, 4, std::nullopt);
  require_offset(call, 5);
  require_bias(call, 6, linear.columns);
  return {linear_result(call)};
}

ExprId static_quant_int4_formula(Formula& f, std::size_t, Index index) {
  const IndexExpr& n = index.back();
  const std::int64_t group = f.attributes().integer("group_size");
  const E product = sum_over(f, {f.type(1).shape[1]}, [&](Index k) {
    E x = load_row(f, index, k[0]), weight = f.load(1, {n, k[0]});
    const IndexExpr g = f.simplified(floor_div(k[0], group));
    if (f.has(5)) x = x - at_position(f, 5, 0, ScalarType::kInt32);
    if (f.has(3)) weight = weight - f.convert(f.load(3, {n, g}), ScalarType::kInt32);
    return f.convert(x, kFloat) * (f.convert(weight, kFloat) * f.convert(f.load(2, {n, g}), kFloat));
  });
  return plus_bias(f, product * at_position(f, 4, 0, kFloat), 6, n);
}

// --- fp8_linear(x, w, x_scale, w_scale, bias?)

std::vector<ValueType> infer_fp8(const OpCall& call) {
  const LinearSizes linear = linear_shapes(call);
  require_dtype(call, 0, {DType::kFloat8E4M3FN});
  require_dtype(call, 1, {DType::kFloat8E4M3FN});
  require_scale(call, 2, linear.rows);
  require_scale(call, 3, linear.columns);
  require_bias(call, 4, linear.columns);
  return {linear_result(call)};
}

ExprId fp8_formula(Formula& f, std::size_t, Index index) {
  const IndexExpr& n = index.back();
  const E product = sum_over(f, {f.type(1).shape[1]}, [&](Index k) {
    return load_row(f, index, k[0]) * f.load(1, {n, k[0]});
  });
  const E scaled = product * at_position(f, 2, row_number(f, index), kFloat) * at_position(f, 3, n, kFloat);
  return plus_bias(f, scaled, 4, n);
}

// --- mxfp4_linear(x, w, w_scale, bias?, x_scale?)

constexpr std::int64_t kScaleBlock = 32;  // elements that share a scale

void require_block_scales(const OpCall& call, std::size_t operand, const Dim& rows, const Dim& blocks) {
  require_dtype(call, operand, {DType::kFloat8E8M0FNU});
  const Shape& shape = tensor_of_rank(call, operand, 2).shape;
  require_equal(call, rows, shape[0], "the rows and their block scales", input_place(operand));
  require_equal(call, blocks, shape[1], "the blocks of 32 and their scales", input_place(operand));
}

std::vector<ValueType> infer_mxfp4(const OpCall& call) {
  const LinearSizes linear = linear_shapes(call);
  require_dtype(call, 0, {DType::kFloat16, DType::kBFloat16, DType::kFloat8E4M3FN});
  require_dtype(call, 1, {DType::kFloat4E2M1FN});
  const Dim blocks =
      require_divisible(call, linear.inner, kScaleBlock, "the blocks of the inner dimension", input_place(1));
  require_block_scales(call, 2, linear.columns, blocks);
  require_bias(call, 3, linear.columns);
  const bool scaled = call.tensor(0).dtype == DType::kFloat8E4M3FN;
  if (scaled && !call.has(4))
    fail(input_place(4), "operand missing", "nothing", "the block scales of a float8_e4m3fn x");
  if (!scaled && call.has(4))
    fail(input_place(4), "block scales of an x in 16 bits", to_string(call.tensor(4), call.symbols), "no operand");
  if (scaled) require_block_scales(call, 4, linear.rows, blocks);
  return {linear_result(call)};
}

ExprId mxfp4_formula(Formula& f, std::size_t, Index index) {
  const IndexExpr& n = index.back();
  const E product = sum_over(f, {f.type(1).shape[1]}, [&](Index k) {
    const IndexExpr block = f.simplified(floor_div(k[0], kScaleBlock));
    E x = load_row(f, index, k[0]);
    if (f.has(4)) x = x * f.load(4, {row_number(f, index), block});
    return x * (f.load(1, {n, k[0]}) * f.load(2, {n, block}));
  });
  return plus_bias(f, product, 3, n);
}

// --- grouped_matmul(x, w, group_offsets, bias?)

std::vector<ValueType> infer_grouped(const OpCall& call) {
  const TensorType& x = tensor_of_rank(call, 0, 2);
  const TensorType& weight = tensor_of_rank(call, 1, 3);
  require_float(call, 0);
  require_same_dtype(call, 1);
  require_equal(call, x.shape[1], weight.shape[1], "the inner dimensions of a product", input_place(1));
  require_index_dtype(call, 2);
  require_equal(call, weight.shape[0], tensor_of_rank(call, 2, 1).shape[0], "the experts and their offsets",
                input_place(2));
  if (call.has(3)) {
    require_same_dtype(call, 3);
    const Shape& bias = tensor_of_rank(call, 3, 2).shape;
    require_equal(call, weight.shape[0], bias[0], "the experts and their biases", input_place(3));
    require_equal(call, weight.shape[2], bias[1], "the output channels and the bias", input_place(3));
  }
  return {TensorType{x.dtype, {x.shape[0], weight.shape[2]}}};
}

// The expert of a row is the number of groups that end at or before it.
ExprId grouped_formula(Formula& f, std::size_t, Index index) {
  const IndexExpr &quantized_row = index[0], &n = index[1];
  const Shape& weight = f.type(1).shape;
  const ScalarType type = compute_type(f.type(0).dtype);
  if (weight[0].is(0)) return zero(f, type);
  const E at = f.index(quantized_row);
  const E ended = f.sum({weight[0]}, [&](Index e) { return f.convert(f.load(2, {e[0]}) <= at, ScalarType::kInt64); });
  const IndexExpr expert = weight[0].is(1) ? IndexExpr(0) : f.as_index(ended, weight[0]);
  const E owned = ended < f.index(weight[0]);
  const auto value = [&] {
    E product = sum_over(f, {weight[1]}, [&](Index k) {
      return f.load(0, {quantized_row, k[0]}) * f.load(1, {expert, k[0], n});
    });
    return f.has(3) ? product + f.load(3, {expert, n}) : product;
  };
  // With one expert it is an ordinary product of all rows.
  if (weight[0].is(1)) return select(owned, value(), zero(f, type));
  return f.guarded(owned, value, zero(f, type));
}

OpDef quantized_row(std::string op, std::string summary, std::vector<std::string> operands,
                    std::vector<AttributeSpec> attributes, std::vector<ValueType> (*infer)(const OpCall&),
                    ExprId (*formula)(Formula&, std::size_t, Index)) {
  OpDef def{.name = std::move(op), .family = "quantized", .summary = std::move(summary)};
  def.operands = std::move(operands);
  def.attributes = std::move(attributes);
  def.infer = infer;
  def.formula = formula;
  return def;
}

}  // namespace

std::vector<OpDef> quantized_ops() {
  using enum AttributeType;
  const AttributeSpec out{"out_dtype", kDType, true};
  return {
      quantized_row(
          "static_quant_linear", "((x - x_offset) @ w^T) * x_scale * w_scale + bias on int8, accumulated in int32.",
          {"x", "w", "w_scale", "x_scale", "x_offset?", "bias?"}, {out}, infer_static_quant, static_quant_formula),
      quantized_row("static_quant_linear_int4",
                    "The same with int4 weights, whose scales and offsets belong to groups along K.",
                    {"x", "w", "w_scale", "w_offset?", "x_scale", "x_offset?", "bias?"},
                    {{"group_size", kInteger, true}, out}, infer_static_quant_int4, static_quant_int4_formula),
      quantized_row("fp8_linear", "(x @ w^T) * x_scale * w_scale + bias on float8_e4m3fn.",
                    {"x", "w", "x_scale", "w_scale", "bias?"}, {out}, infer_fp8, fp8_formula),
      quantized_row("mxfp4_linear",
                    "x @ (w * w_scale)^T + bias with float4_e2m1fn weights scaled in blocks of 32 along K.",
                    {"x", "w", "w_scale", "bias?", "x_scale?"}, {out}, infer_mxfp4, mxfp4_formula),
      quantized_row("grouped_matmul", "Each row of x times the matrix of its group; rows past the last group are 0.",
                    {"x", "w", "group_offsets", "bias?"}, {}, infer_grouped, grouped_formula),
  };
}

}  // namespace fusec::ops
