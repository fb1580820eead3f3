// Ops with indices from tensors. embedding, gather and index_select have formulas; scatter, index_put, topk and sort
// are special ops. A loaded index is clamped to its dimension before use.
#include <algorithm>

#include "ir/ops/matrix.h"
#include "ir/ops/positions.h"
#include "ir/ops/table.h"

namespace fusec::ops {
namespace {

using Index = std::span<const IndexExpr>;

// --- embedding, index_select, gather

std::vector<ValueType> infer_embedding(const OpCall& call) {
  const TensorType& weight = tensor_of_rank(call, 0, 2);
  require_index_dtype(call, 1);
  TensorType type{weight.dtype, call.tensor(1).shape};
  type.shape.push_back(weight.shape[1]);
  return {type};
}

// The element of operand 0 at an index that is clamped to a dimension of `extent`; 0 if the dimension is empty.
E load_clamped(Formula& f, const std::vector<IndexExpr>& index, const IndexExpr& extent) {
  return f.guarded(
      f.less(0, extent), [&] { return f.load(0, index); }, f.number(0, compute_type(f.type(0).dtype)));
}

ExprId embedding_formula(Formula& f, std::size_t, Index index) {
  const IndexExpr indexing_row = f.as_index(f.load(1, index.first(index.size() - 1)), f.type(0).shape[0]);
  return load_clamped(f, {indexing_row, index.back()}, f.type(0).shape[0]);
}

std::vector<ValueType> infer_index_select(const OpCall& call) {
  TensorType type = tensor_operand(call, 0);
  const std::size_t dim = dim_attribute(call, "dim", type.rank());
  require_index_dtype(call, 1);
  const TensorType& index = call.tensor(1);
  if (index.rank() > 1) tensor_of_rank(call, 1, 1);
  const Dim count = index.rank() == 1 ? index.shape[0] : Dim(1);
  if (type.rank() == 0)
    require_equal(call, 1, count, "the number of indices into a 0-d tensor", input_place(1));
  else
    type.shape[dim] = count;
  return {type};
}

ExprId index_select_formula(Formula& f, std::size_t, Index index) {
  const Shape& shape = f.type(0).shape;
  if (shape.empty()) return f.load(0, index);
  const std::size_t dim = dim_attribute(f, "dim", shape.size());
  const E position = f.type(1).rank() == 0 ? f.load(1, Index()) : f.load(1, index.subspan(dim, 1));
  std::vector<IndexExpr> own(index.begin(), index.end());
  own[dim] = f.as_index(position, shape[dim]);
  return load_clamped(f, own, shape[dim]);
}

// Throws unless operand `smaller` fits into `shape` in all dimensions except `dim`.
void require_within(const OpCall& call, std::size_t smaller, const Shape& shape, std::optional<std::size_t> dim,
                    const std::string& what) {
  const Shape& own = call.tensor(smaller).shape;
  for (std::size_t d = 0; d < std::min(own.size(), shape.size()); ++d)
    if (d != dim)
      require_at_most(call, own[d], shape[d], what + " in dimension " + std::to_string(d), input_place(smaller));
}

// Checks the rank of the indices. gather and scatter treat a 0-d tensor as a tensor of one element.
void require_index_rank(const OpCall& call, std::size_t operand) {
  const std::size_t x = std::max<std::size_t>(call.tensor(0).rank(), 1);
  const TensorType& type = tensor_operand(call, operand);
  if (std::max<std::size_t>(type.rank(), 1) != x) tensor_of_rank(call, operand, call.tensor(0).rank());
}

std::vector<ValueType> infer_gather(const OpCall& call) {
  const TensorType& x = tensor_operand(call, 0);
  const std::size_t dim = dim_attribute(call, "dim", x.rank());
  require_index_dtype(call, 1);
  require_index_rank(call, 1);
  require_within(call, 1, x.shape, dim, "the index of a gather is no larger than its tensor");
  return {TensorType{x.dtype, call.tensor(1).shape}};
}

ExprId gather_formula(Formula& f, std::size_t, Index index) {
  const Shape& shape = f.type(0).shape;
  if (shape.empty()) return f.load(0, Index());
  const std::size_t dim = dim_attribute(f, "dim", shape.size());
  std::vector<IndexExpr> own(index.begin(), index.end());
  own.resize(shape.size(), IndexExpr(0));
  own[dim] = f.as_index(f.load(1, index), shape[dim]);
  return load_clamped(f, own, shape[dim]);
}

// --- scatter, index_put

void require_dtype_of_x(const OpCall& call, std::size_t operand) {
  if (call.operands[operand].kind == Operand::Kind::kTensor) require_same_dtype(call, operand);
}

std::vector<ValueType> infer_scatter(const OpCall& call) {
  const TensorType& x = tensor_operand(call, 0);
  const std::size_t dim = dim_attribute(call, "dim", x.rank());
  require_index_dtype(call, 1);
  require_index_rank(call, 1);
  tensor_operand(call, 2);
  require_dtype_of_x(call, 2);
  require_within(call, 1, x.shape, dim, "the index of a scatter is no larger than its tensor");
  if (call.operands[2].kind == Operand::Kind::kTensor) {
    require_index_rank(call, 2);
    require_within(call, 1, call.tensor(2).shape, std::nullopt, "the index of a scatter is no larger than its source");
  }
  return {x};
}

std::vector<ValueType> infer_index_put(const OpCall& call) {
  const TensorType& x = tensor_operand(call, 0);
  tensor_operand(call, 1);
  require_dtype_of_x(call, 1);
  const std::size_t count = call.operands.size() - std::min<std::size_t>(call.operands.size(), 2);
  if (count > x.rank())
    fail(input_place(2 + x.rank()), "more indices than dimensions", std::to_string(count),
         std::to_string(x.rank()) + " or fewer");
  Shape common, shape;
  std::vector<std::size_t> indexed;
  for (std::size_t d = 0; d < x.rank(); ++d) {
    if (!call.has(2 + d)) {
      shape.push_back(x.shape[d]);
      continue;
    }
    require_index_dtype(call, 2 + d);
    common = broadcast_shapes(call, common, call.tensor(2 + d).shape, input_place(2 + d));
    indexed.push_back(d);
  }
  if (indexed.empty()) fail("inputs", "no index", "none", "an index for one dimension or more");
  const bool neighbours = indexed.back() - indexed.front() + 1 == indexed.size();
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(neighbours ? indexed.front() : 0), common.begin(),
               common.end());
  require_broadcastable(call, 1, shape);
  return {x};
}

// --- topk, sort

std::vector<ValueType> values_and_indices(TensorType values) {
  TensorType indices{DType::kInt64, values.shape};
  return {std::move(values), std::move(indices)};
}

std::vector<ValueType> infer_topk(const OpCall& call) {
  TensorType type = tensor_operand(call, 0);
  const std::size_t dim = dim_attribute(call, "dim", type.rank(), -1);
  const Dim k = *call.attributes.dim("k");
  const std::string place = attribute_place("k");
  if (proves_less(k, 0, bounds_of(call))) fail(place, "negative number of elements", text_of(call, k), "0 or more");
  require_at_most(call, k, type.rank() == 0 ? Dim(1) : type.shape[dim], "k of topk", place);
  if (type.rank() > 0) type.shape[dim] = k;
  return values_and_indices(std::move(type));
}

std::vector<ValueType> infer_sort(const OpCall& call) {
  const TensorType& x = tensor_operand(call, 0);
  dim_attribute(call, "dim", x.rank(), -1);
  return values_and_indices(x);
}

OpDef indexing_row(std::string op, std::string summary, std::vector<std::string> operands,
                   std::vector<AttributeSpec> attributes, std::vector<ValueType> (*infer)(const OpCall&)) {
  OpDef def{.name = std::move(op), .family = "indexing", .summary = std::move(summary)};
  def.operands = std::move(operands);
  def.attributes = std::move(attributes);
  def.infer = infer;
  return def;
}

OpDef with_formula(OpDef def, ExprId (*formula)(Formula&, std::size_t, Index)) {
  def.formula = formula;
  return def;
}

OpDef special(OpDef def, Special kind) {
  def.special = kind;
  def.several = kind == Special::kSort;  // values and indices: name.0 and name.1
  def.pattern = OpPattern::kOpaque;
  return def;
}

}  // namespace

std::vector<OpDef> indexing_ops() {
  using enum AttributeType;
  const AttributeSpec dim{"dim", kInteger, true};
  return {
      with_formula(
          indexing_row("embedding", "Rows of a table chosen by indices.", {"weight", "indices"}, {}, infer_embedding),
          embedding_formula),
      with_formula(indexing_row("gather", "out[i][j] = x[index[i][j]][j] for dim 0, and so on.", {"x", "index"}, {dim},
                                infer_gather),
                   gather_formula),
      with_formula(indexing_row("index_select", "The listed positions of a dimension.", {"x", "index"}, {dim},
                                infer_index_select),
                   index_select_formula),
      special(indexing_row("scatter", "x with out[index[i][j]][j] = src[i][j] for dim 0, and so on.",
                           {"x", "index", "src"}, {dim}, infer_scatter),
              Special::kScatter),
      special(indexing_row("index_put", "x with values written, or added, at the positions that the indices name.",
                           {"x", "values", "indices?*"}, {{"accumulate", kFlag}}, infer_index_put),
              Special::kScatter),
      special(indexing_row("topk", "The k greatest or smallest elements of a dimension, and their positions.", {"x"},
                           {{"k", kDim, true}, {"dim", kInteger}, {"largest", kFlag}, {"sorted", kFlag}}, infer_topk),
              Special::kSort),
      special(indexing_row("sort", "A dimension in ascending or descending order, and where each element came from.",
                           {"x"}, {{"dim", kInteger}, {"descending", kFlag}, {"stable", kFlag}}, infer_sort),
              Special::kSort),
  };
}

}  // namespace fusec::ops
