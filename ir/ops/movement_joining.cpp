// concat and stack join tensors along a dimension. tuple and get_item only group values; no element moves.
#include <algorithm>

#include "ir/ops/movement.h"
#include "ir/ops/positions.h"

namespace fusec::ops {
namespace {

using Index = std::span<const IndexExpr>;

// PyTorch's concat accepts an empty tensor of shape [0] beside tensors of any rank.
bool is_legacy_empty(const Shape& shape) {
  return shape.size() == 1 && shape[0].is(0);
}

// The operands that contribute elements or shape, in order.
std::vector<std::size_t> concatenated(std::span<const Operand> operands) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (!is_legacy_empty(operands[i].type.tensor.shape)) chosen.push_back(i);
  if (chosen.empty() && !operands.empty()) chosen.push_back(0);
  return chosen;
}

std::vector<ValueType> infer_concat(const OpCall& call) {
  for (std::size_t i = 0; i < call.operands.size(); ++i) tensor_of_min_rank(call, i, 1);
  const std::vector<std::size_t> chosen = concatenated(call.operands);
  TensorType type = call.tensor(chosen[0]);
  type.dtype = promote(call.operands);
  const std::size_t dim = dim_attribute(call, "dim", type.rank(), 0);
  Dim sum = type.shape[dim];
  for (std::size_t n = 1; n < chosen.size(); ++n) {
    const TensorType& x = tensor_of_rank(call, chosen[n], type.rank());
    for (std::size_t d = 0; d < type.rank(); ++d)
      if (d != dim)
        type.shape[d] = require_equal(call, type.shape[d], x.shape[d],
                                      "dimensions " + std::to_string(d) + " of a concat", input_place(chosen[n]));
    sum += x.shape[dim];
  }
  type.shape[dim] = simplify(sum, bounds_of(call));
  return {type};
}

struct Piece {
  E condition;                 // whether the output position lies in this piece
  std::function<E()> element;  // its element, evaluated only under that condition
};

// The element of the piece with a true condition. Exactly one condition is true, so the last piece needs no test.
E choose(Formula& f, const std::vector<Piece>& pieces) {
  E chosen;
  for (std::size_t n = pieces.size(); n-- > 0;) {
    const ScalarType type = compute_type(f.output_type().dtype);
    if (chosen.pool) {
      chosen = f.guarded(pieces[n].condition, pieces[n].element, chosen);
    } else {
      chosen = zero(f, type);
      f.guarded(
          pieces[n].condition, [&] { return chosen = pieces[n].element(); }, zero(f, type));
    }
  }
  return chosen;
}

ExprId concat_formula(Formula& f, std::size_t, Index index) {
  const std::size_t dim = dim_attribute(f, "dim", index.size(), 0);
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < f.operand_count(); ++i) operands.push_back(f.operand(i));
  std::vector<Piece> pieces;
  IndexExpr offset = 0;
  for (const std::size_t operand : concatenated(operands)) {
    const IndexExpr position = f.simplified(index[dim] - offset);
    const Dim extent = f.type(operand).shape[dim];
    auto element = [&f, index, dim, operand, position] {
      std::vector<IndexExpr> own(index.begin(), index.end());
      own[dim] = position;
      return load_operand(f, operand, own, f.output_type().dtype);
    };
    pieces.push_back({f.inside(position, extent), element});
    offset += extent;
  }
  return choose(f, pieces);
}

std::vector<ValueType> infer_stack(const OpCall& call) {
  TensorType type = tensor_operand(call, 0);
  for (std::size_t i = 1; i < call.operands.size(); ++i) {
    const TensorType& x = tensor_of_rank(call, i, type.rank());
    for (std::size_t d = 0; d < type.rank(); ++d)
      type.shape[d] = require_equal(call, type.shape[d], x.shape[d], "the shapes of a stack", input_place(i));
  }
  type.dtype = promote(call.operands);
  const std::size_t dim = dim_attribute(call, "dim", type.rank() + 1, 0);
  type.shape.insert(type.shape.begin() + static_cast<std::ptrdiff_t>(dim),
                    Dim(static_cast<std::int64_t>(call.operands.size())));
  return {type};
}

ExprId stack_formula(Formula& f, std::size_t, Index index) {
  const std::size_t dim = dim_attribute(f, "dim", index.size(), 0);
  std::vector<IndexExpr> own(index.begin(), index.end());
  own.erase(own.begin() + static_cast<std::ptrdiff_t>(dim));
  std::vector<Piece> pieces;
  for (std::size_t operand = 0; operand < f.operand_count(); ++operand) {
    const IndexExpr position = index[dim] - static_cast<std::int64_t>(operand);
    pieces.push_back(
        {f.inside(position, 1), [&f, &own, operand] { return load_operand(f, operand, own, f.output_type().dtype); }});
  }
  return choose(f, pieces);
}

std::vector<ValueType> infer_tuple(const OpCall& call) {
  std::vector<ValueType> fields;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    if (!call.has(i)) fail(input_place(i), "operand missing", "null", "a value");
    fields.push_back(call.operands[i].type);
  }
  return {ValueType::tuple(std::move(fields))};
}

std::vector<ValueType> infer_get_item(const OpCall& call) {
  if (!call.has(0) || call.operands[0].kind != Operand::Kind::kTuple)
    fail(input_place(0), "wrong kind of operand",
         call.has(0) ? to_string(call.operands[0].type, call.symbols) : std::string("nothing"), "a tuple",
         "select takes one position of a tensor");
  const std::vector<ValueType>& fields = call.operands[0].type.fields;
  return {fields[field_of(call.attributes, fields.size())]};
}

}  // namespace

std::size_t field_of(const Attributes& attributes, std::size_t fields) {
  const auto count = static_cast<std::int64_t>(fields);
  const std::int64_t index = attributes.integer("index");
  if (index < -count || index >= count)
    fail(attribute_place("index"), "field out of range", std::to_string(index),
         count == 0 ? "a tuple with fields" : std::to_string(-count) + " to " + std::to_string(count - 1));
  return static_cast<std::size_t>(index < 0 ? index + count : index);
}

std::vector<OpDef> joining_ops() {
  using enum AttributeType;
  OpDef concat{.name = "concat", .family = "movement", .summary = "Tensors one after the other along a dimension."};
  concat.operands = {"tensors+"};
  concat.attributes = {{"dim", kInteger}};
  concat.infer = infer_concat;
  concat.formula = concat_formula;

  OpDef stack{.name = "stack", .family = "movement", .summary = "Tensors of one shape along a new dimension."};
  stack.operands = {"tensors+"};
  stack.attributes = {{"dim", kInteger}};
  stack.infer = infer_stack;
  stack.formula = stack_formula;

  OpDef get_item{.name = "get_item", .family = "movement", .summary = "One field of a tuple."};
  get_item.operands = {"x"};
  get_item.attributes = {{"index", kInteger, true}};
  get_item.infer = infer_get_item;
  get_item.special = Special::kTuple;
  get_item.pattern = OpPattern::kInjective;

  OpDef tuple{.name = "tuple", .family = "movement", .summary = "Any number of values as one tuple."};
  tuple.operands = {"fields*"};
  tuple.infer = infer_tuple;
  tuple.special = Special::kTuple;
  tuple.pattern = OpPattern::kOpaque;

  return {concat, stack, get_item, tuple};
}

}  // namespace fusec::ops
