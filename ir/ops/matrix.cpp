// Matrix products: matmul, linear, bmm, addmm. Convolutions and attention are in convolution.cpp and attention.cpp.
#include "ir/ops/matrix.h"

#include <algorithm>

#include "ir/ops/positions.h"
#include "ir/ops/table.h"

namespace fusec::ops {

E sum_over(Formula& f, const std::vector<Dim>& extents, const std::function<E(Formula::Index)>& body) {
  std::vector<IndexExpr> kept;
  for (const Dim& extent : extents)
    if (!extent.is(1)) kept.push_back(extent);
  return f.sum(kept, [&](Formula::Index axes) {
    std::vector<IndexExpr> index;
    std::size_t next = 0;
    for (const Dim& extent : extents) index.push_back(extent.is(1) ? IndexExpr(0) : axes[next++]);
    return body(index);
  });
}

void require_same_dtype(const OpCall& call, std::size_t operand) {
  const DType wanted = tensor_operand(call, 0).dtype, dtype = tensor_operand(call, operand).dtype;
  if (dtype != wanted)
    fail(input_place(operand), "operands differ in dtype", std::string(name(dtype)), std::string(name(wanted)),
         "a cast before it brings them together");
}

std::vector<IndexExpr> broadcast_index(const Shape& shape, std::size_t count, Formula::Index index, std::size_t of) {
  std::vector<IndexExpr> own(count, IndexExpr(0));
  for (std::size_t i = 0; i < count; ++i)
    if (!shape[i].is(1)) own[i] = index[of - count + i];
  return own;
}

std::vector<std::int64_t> per_dimension(const Attributes& attributes, std::string_view attribute, std::size_t count,
                                        std::int64_t otherwise) {
  auto list = attributes.integers(attribute);
  if (!list || list->empty()) return std::vector<std::int64_t>(count, otherwise);
  if (list->size() == 1) list->resize(count, list->front());
  return *list;
}

std::vector<std::int64_t> per_dimension(const OpCall& call, std::string_view attribute, std::size_t count,
                                        std::int64_t otherwise, std::int64_t least) {
  const std::vector<std::int64_t> list = per_dimension(call.attributes, attribute, count, otherwise);
  if (list.size() != count)
    fail(attribute_place(attribute), "wrong number of entries", std::to_string(list.size()),
         count == 1 ? "1" : "1 or " + std::to_string(count));
  for (const std::int64_t entry : list)
    if (entry < least)
      fail(attribute_place(attribute), "entry out of range", std::to_string(entry), std::to_string(least) + " or more");
  return list;
}

namespace {

using Index = std::span<const IndexExpr>;

void require_number_dtype(const OpCall& call, std::size_t operand) {
  if (tensor_operand(call, operand).dtype == DType::kBool)
    fail(input_place(operand), "wrong dtype", "bool", "integers or floats");
}

// --- matmul, bmm

std::vector<ValueType> infer_matmul(const OpCall& call) {
  const TensorType& a = tensor_of_min_rank(call, 0, 1);
  const TensorType& b = tensor_of_min_rank(call, 1, 1);
  require_number_dtype(call, 0);
  require_same_dtype(call, 1);
  const std::size_t rows = a.rank() >= 2 ? 1 : 0, columns = b.rank() >= 2 ? 1 : 0;
  require_equal(call, a.shape.back(), b.shape[b.rank() - 1 - columns], "the inner dimensions of a product",
                input_place(1));
  const Shape a_batch(a.shape.begin(), a.shape.end() - 1 - static_cast<std::ptrdiff_t>(rows));
  const Shape b_batch(b.shape.begin(), b.shape.end() - 1 - static_cast<std::ptrdiff_t>(columns));
  Shape shape = broadcast_shapes(call, a_batch, b_batch, input_place(1));
  if (rows) shape.push_back(a.shape[a.rank() - 2]);
  if (columns) shape.push_back(b.shape.back());
  return {TensorType{a.dtype, std::move(shape)}};
}

ExprId matmul_formula(Formula& f, std::size_t, Index index) {
  const TensorType& a = f.type(0);
  const TensorType& b = f.type(1);
  const std::size_t rows = a.rank() >= 2 ? 1 : 0, columns = b.rank() >= 2 ? 1 : 0;
  const std::size_t batch = index.size() - rows - columns;
  std::vector<IndexExpr> a_index = broadcast_index(a.shape, a.rank() - 1 - rows, index, batch);
  std::vector<IndexExpr> b_index = broadcast_index(b.shape, b.rank() - 1 - columns, index, batch);
  if (rows) a_index.push_back(index[batch]);
  const E product = sum_over(f, {a.shape.back()}, [&](Index k) {
    std::vector<IndexExpr> left = a_index, right = b_index;
    left.push_back(k[0]);
    right.push_back(k[0]);
    if (columns) right.push_back(index.back());
    return f.load(0, left) * f.load(1, right);
  });
  return wrap(f, product, f.output_type().dtype);
}

std::vector<ValueType> infer_bmm(const OpCall& call) {
  const TensorType& a = tensor_of_rank(call, 0, 3);
  const TensorType& b = tensor_of_rank(call, 1, 3);
  require_number_dtype(call, 0);
  require_same_dtype(call, 1);
  const Dim batch = require_equal(call, a.shape[0], b.shape[0], "the batch dimensions of bmm", input_place(1));
  require_equal(call, a.shape[2], b.shape[1], "the inner dimensions of a product", input_place(1));
  return {TensorType{a.dtype, {batch, a.shape[1], b.shape[2]}}};
}

ExprId bmm_formula(Formula& f, std::size_t, Index index) {
  const E product = sum_over(f, {f.type(0).shape[2]}, [&](Index k) {
    return f.load(0, {index[0], index[1], k[0]}) * f.load(1, {index[0], k[0], index[2]});
  });
  return wrap(f, product, f.output_type().dtype);
}

// --- linear

std::vector<ValueType> infer_linear(const OpCall& call) {
  const TensorType& x = tensor_of_min_rank(call, 0, 1);
  const TensorType& weight = tensor_of_min_rank(call, 1, 1);
  if (weight.rank() > 2) tensor_of_rank(call, 1, 2);
  require_number_dtype(call, 0);
  require_same_dtype(call, 1);
  const Dim &inner = x.shape.back(), &other = weight.shape.back();
  if (inner.is_constant() && other.is_constant() && inner != other)
    fail(input_place(1), "the inner dimensions of a product differ", text_of(call, other), text_of(call, inner),
         "x is " + text_of(call, x.shape) + " and the weight " + text_of(call, weight.shape) +
             ": linear sums over the last dimension of both");
  require_equal(call, inner, other, "the inner dimensions of a product", input_place(1));
  TensorType type{x.dtype, {x.shape.begin(), x.shape.end() - 1}};
  if (weight.rank() == 2) type.shape.push_back(weight.shape[0]);
  if (call.has(2)) {
    require_same_dtype(call, 2);
    require_broadcastable(call, 2, type.shape);
  }
  return {type};
}

ExprId linear_formula(Formula& f, std::size_t, Index index) {
  const bool columns = f.type(1).rank() == 2;
  E value = sum_over(f, {f.type(0).shape.back()}, [&](Index k) {
    std::vector<IndexExpr> matrix_row(index.begin(), index.end() - (columns ? 1 : 0)), weight;
    matrix_row.push_back(k[0]);
    if (columns) weight.push_back(index.back());
    weight.push_back(k[0]);
    return f.load(0, matrix_row) * f.load(1, weight);
  });
  if (f.has(2)) value = value + f.load_broadcast(2, index);
  return wrap(f, value, f.output_type().dtype);
}

// --- addmm

std::vector<ValueType> infer_addmm(const OpCall& call) {
  tensor_operand(call, 0);
  const TensorType& a = tensor_of_rank(call, 1, 2);
  const TensorType& b = tensor_of_rank(call, 2, 2);
  require_number_dtype(call, 0);
  require_same_dtype(call, 1);
  require_same_dtype(call, 2);
  require_equal(call, a.shape[1], b.shape[0], "the inner dimensions of a product", input_place(2));
  const Shape shape{a.shape[0], b.shape[1]};
  require_broadcastable(call, 0, shape);
  for (const std::string_view factor : {"alpha", "beta"})
    if (call.attributes.has(factor) && !is_float(a.dtype) &&
        call.attributes.scalar(factor).category == Category::kFloat)
      fail(attribute_place(factor), "wrong category", "a float", "an integer, as the operands are");
  return {TensorType{a.dtype, shape}};
}

ExprId addmm_formula(Formula& f, std::size_t, Index index) {
  const DType dtype = f.output_type().dtype;
  auto factor = [&](std::string_view attribute) {
    return f.attributes().has(attribute) ? f.attributes().scalar(attribute) : Scalar::whole(1);
  };
  auto times = [&](E value, const Scalar& by) {
    return by.as_double() == 1 ? value : value * f.scalar(by, compute_type(dtype));
  };
  E value = times(sum_over(f, {f.type(1).shape[1]},
                           [&](Index k) {
                             return f.load(1, {index[0], k[0]}) * f.load(2, {k[0], index[1]});
                           }),
                  factor("alpha"));
  // With beta 0 the bias is ignored, including NaNs in it.
  const Scalar beta = factor("beta");
  if (beta.as_double() != 0) value = value + times(f.load_broadcast(0, index), beta);
  return wrap(f, value, dtype);
}

OpDef matrix_row(std::string op, std::string summary, std::vector<std::string> operands,
                 std::vector<ValueType> (*infer)(const OpCall&), ExprId (*formula)(Formula&, std::size_t, Index)) {
  OpDef def{.name = std::move(op), .family = "matrix", .summary = std::move(summary)};
  def.operands = std::move(operands);
  def.infer = infer;
  def.formula = formula;
  return def;
}

}  // namespace

std::vector<OpDef> product_ops() {
  OpDef addmm = matrix_row("addmm", "beta * bias + alpha * (a @ b).", {"bias", "a", "b"}, infer_addmm, addmm_formula);
  addmm.attributes = {{"alpha", AttributeType::kScalar}, {"beta", AttributeType::kScalar}};
  return {
      matrix_row("matmul", "The product of matrices, of vectors, and of broadcasting batches of matrices.", {"a", "b"},
                 infer_matmul, matmul_formula),
      matrix_row("linear", "x @ weight^T + bias.", {"x", "weight", "bias?"}, infer_linear, linear_formula),
      matrix_row("bmm", "The products of two batches of matrices.", {"a", "b"}, infer_bmm, bmm_formula),
      addmm,
  };
}

std::vector<OpDef> matrix_ops() {
  std::vector<OpDef> rows;
  for (auto* part : {product_ops, convolution_ops, attention_ops})
    for (OpDef& def : part()) rows.push_back(std::move(def));
  return rows;
}

}  // namespace fusec::ops
