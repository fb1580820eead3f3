// Data movement ops. This file has the rows that only change indices (reshape, flatten, permute, transpose, squeeze,
// unsqueeze, expand); the others are in movement_cutting.cpp, movement_joining.cpp and movement_tiling.cpp.
#include "ir/ops/movement.h"

#include <algorithm>

#include "ir/ops/positions.h"
#include "ir/ops/reshape.h"
#include "ir/ops/table.h"

namespace fusec::ops {
namespace {

using Index = std::span<const IndexExpr>;

// --- reshape, flatten

ExprId reshape_formula(Formula& f, std::size_t, Index index) {
  return f.load(0, reshaped_index(f.type(0).shape, f.output_type().shape, index, f.pool()));
}

std::vector<ValueType> infer_reshape(const OpCall& call) {
  const TensorType& x = tensor_operand(call, 0);
  return {TensorType{x.dtype, resolved_shape(call, x.shape, *call.attributes.dims("shape"), attribute_place("shape"))}};
}

std::vector<ValueType> infer_flatten(const OpCall& call) {
  const TensorType& x = tensor_operand(call, 0);
  const std::size_t start = dim_attribute(call, "start_dim", x.rank(), 0);
  const std::size_t end = dim_attribute(call, "end_dim", x.rank(), -1);
  if (start > end)
    fail(attribute_place("start_dim"), "start_dim comes after end_dim", std::to_string(start),
         "at most " + std::to_string(end));
  if (x.rank() == 0) return {TensorType{x.dtype, {Dim(1)}}};
  Shape shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(start));
  Dim joined = 1;
  for (std::size_t i = start; i <= end; ++i) joined *= x.shape[i];
  shape.push_back(simplify(joined, bounds_of(call)));
  shape.insert(shape.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(end) + 1, x.shape.end());
  return {TensorType{x.dtype, std::move(shape)}};
}

// --- permute, transpose: where[i] is the dimension of the operand that becomes dimension i

std::vector<std::size_t> permutation(const Attributes& attributes, std::size_t rank) {
  std::vector<std::size_t> where;
  const std::vector<std::int64_t> dims = *attributes.integers("dims");
  for (const std::int64_t d : dims) where.push_back(normalize_dim(d, rank, attribute_place("dims")));
  std::vector<std::size_t> sorted = where;
  std::sort(sorted.begin(), sorted.end());
  const bool each_once = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  if (where.size() != rank || !each_once) {
    std::string found;
    for (const std::size_t d : where) found += (found.empty() ? "" : ", ") + std::to_string(d);
    fail(attribute_place("dims"), "no permutation of the dimensions", "[" + found + "]",
         "each of " + std::to_string(rank) + " dimensions once");
  }
  return where;
}

std::vector<std::size_t> exchange(const Attributes& attributes, std::size_t rank) {
  const std::size_t a = normalize_dim(attributes.integer("dim0"), rank, attribute_place("dim0"));
  const std::size_t b = normalize_dim(attributes.integer("dim1"), rank, attribute_place("dim1"));
  std::vector<std::size_t> where(rank);
  for (std::size_t i = 0; i < rank; ++i) where[i] = i == a ? b : i == b ? a : i;
  return where;
}

using Permutation = std::vector<std::size_t> (*)(const Attributes&, std::size_t);

OpDef permuting_row(std::string op, std::string summary, std::vector<AttributeSpec> attributes, Permutation where_of) {
  OpDef movement_row{.name = std::move(op), .family = "movement", .summary = std::move(summary)};
  movement_row.operands = {"x"};
  movement_row.attributes = std::move(attributes);
  movement_row.infer = [where_of](const OpCall& call) -> std::vector<ValueType> {
    const TensorType& x = tensor_operand(call, 0);
    Shape shape;
    for (const std::size_t d : where_of(call.attributes, x.rank())) shape.push_back(x.shape[d]);
    return {TensorType{x.dtype, std::move(shape)}};
  };
  movement_row.formula = [where_of](Formula& f, std::size_t, Index index) -> ExprId {
    std::vector<IndexExpr> own(index.size());
    const std::vector<std::size_t> where = where_of(f.attributes(), own.size());
    for (std::size_t i = 0; i < own.size(); ++i) own[where[i]] = index[i];
    return f.load(0, own);
  };
  return movement_row;
}

// --- squeeze, unsqueeze

// The dimensions that squeeze removes: those of extent 1 by their bounds, among the listed ones or all.
std::vector<bool> squeezed(const Shape& shape, const Attributes& attributes, const Bounds& bounds) {
  std::vector<bool> goes(shape.size(), true);
  if (const auto listed = attributes.integers("dim")) {
    goes.assign(shape.size(), false);
    for (const std::size_t d : normalize_dims(*listed, shape.size(), attribute_place("dim")))
      if (d < shape.size()) goes[d] = true;
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Range range = range_of(shape[i], bounds);
    if (range.min != 1 || range.max != 1) goes[i] = false;
  }
  return goes;
}

std::vector<ValueType> infer_squeeze(const OpCall& call) {
  const TensorType& x = tensor_operand(call, 0);
  const std::vector<bool> goes = squeezed(x.shape, call.attributes, bounds_of(call));
  Shape shape;
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (!goes[i]) shape.push_back(x.shape[i]);
  return {TensorType{x.dtype, std::move(shape)}};
}

ExprId squeeze_formula(Formula& f, std::size_t, Index index) {
  const Shape& shape = f.type(0).shape;
  const std::vector<bool> goes = squeezed(shape, f.attributes(), f.pool().bounds());
  std::vector<IndexExpr> own(shape.size(), IndexExpr(0));
  std::size_t next = 0;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (!goes[i]) own[i] = index[next++];
  return f.load(0, own);
}

std::vector<ValueType> infer_unsqueeze(const OpCall& call) {
  const TensorType& x = tensor_operand(call, 0);
  const std::size_t dim = dim_attribute(call, "dim", x.rank() + 1);
  Shape shape = x.shape;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim), Dim(1));
  return {TensorType{x.dtype, std::move(shape)}};
}

ExprId unsqueeze_formula(Formula& f, std::size_t, Index index) {
  const std::size_t dim = dim_attribute(f, "dim", index.size());
  std::vector<IndexExpr> own(index.begin(), index.end());
  own.erase(own.begin() + static_cast<std::ptrdiff_t>(dim));
  return f.load(0, own);
}

// --- expand

std::vector<ValueType> infer_expand(const OpCall& call) {
  const TensorType& x = tensor_operand(call, 0);
  const std::string place = attribute_place("shape");
  Shape shape = *call.attributes.dims("shape");
  auto refuse = [&] {
    fail(place, "shape does not expand", text_of(call, *call.attributes.dims("shape")),
         "a shape that " + text_of(call, x.shape) + " broadcasts to");
  };
  if (shape.size() < x.rank()) refuse();
  const std::size_t leading = shape.size() - x.rank();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool keeps = shape[i].is(-1);
    if (i < leading ? keeps || proves_less(shape[i], 0, bounds_of(call))
                    : !keeps && proves_less(shape[i], 0, bounds_of(call)))
      refuse();
    if (i < leading) continue;
    const Dim& own = x.shape[i - leading];
    if (keeps) {
      shape[i] = own;
    } else if (!own.is(1)) {
      if (proves_different(own, shape[i], bounds_of(call))) refuse();
      require_equal(call, own, shape[i], "a dimension and what it expands to", place);
    }
  }
  return {TensorType{x.dtype, std::move(shape)}};
}

ExprId expand_formula(Formula& f, std::size_t, Index index) {
  return f.load_broadcast(0, index);
}

OpDef movement_row(std::string op, std::string summary, std::vector<AttributeSpec> attributes,
                   std::vector<ValueType> (*infer)(const OpCall&), ExprId (*formula)(Formula&, std::size_t, Index),
                   bool view) {
  OpDef def{.name = std::move(op), .family = "movement", .summary = std::move(summary)};
  def.operands = {"x"};
  def.attributes = std::move(attributes);
  def.infer = infer;
  def.formula = formula;
  def.view = view;
  return def;
}

}  // namespace

std::vector<OpDef> reordering_ops() {
  using enum AttributeType;
  return {
      movement_row("reshape", "The same elements in row-major order under another shape; one dimension may be -1.",
                   {{"shape", kDims, true}}, infer_reshape, reshape_formula, true),
      movement_row("flatten", "Joins the dimensions start_dim to end_dim into one.",
                   {{"start_dim", kInteger}, {"end_dim", kInteger}}, infer_flatten, reshape_formula, true),
      permuting_row("permute", "Reorders the dimensions.", {{"dims", kIntegers, true}}, permutation),
      permuting_row("transpose", "Exchanges two dimensions.", {{"dim0", kInteger, true}, {"dim1", kInteger, true}},
                    exchange),
      movement_row("squeeze", "Drops dimensions of 1: the listed ones that are 1, or all.", {{"dim", kIntegers}},
                   infer_squeeze, squeeze_formula, true),
      movement_row("unsqueeze", "Inserts a dimension of 1.", {{"dim", kInteger, true}}, infer_unsqueeze,
                   unsqueeze_formula, true),
      movement_row("expand", "Broadcasts dimensions of 1, and new leading ones, to a shape; -1 keeps a dimension.",
                   {{"shape", kDims, true}}, infer_expand, expand_formula, false),
  };
}

std::vector<OpDef> movement_ops() {
  std::vector<OpDef> rows;
  for (auto* part : {reordering_ops, cutting_ops, joining_ops, tiling_ops})
    for (OpDef& def : part()) rows.push_back(std::move(def));
  return rows;
}

}  // namespace fusec::ops
