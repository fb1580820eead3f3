// slice, select, split, chunk: parts of a tensor.
#include <limits>
#include <span>

#include "ir/ops/movement.h"
#include "ir/ops/positions.h"

namespace fusec::ops {
namespace {

using Index = std::span<const IndexExpr>;

// --- slice

struct Slice {
  Dim start, length, step;
};

Slice slice_of(const Attributes& attributes, const Dim& size, const Bounds& bounds) {
  const Dim start_given = attributes.dim("start").value_or(Dim(0));
  const Dim end_given = attributes.dim("end").value_or(Dim(std::numeric_limits<std::int64_t>::max()));
  const Dim step = attributes.integer("step", 1);
  const Dim wanted = wrapped_position(start_given, size, bounds);
  const Dim start = clamped_position(wanted, 0, size, bounds);
  const Dim end = clamped_position(wrapped_position(end_given, size, bounds), start, size, bounds);
  // A slice to the end of the dimension: the length of x[-3:] is min(3, size), not size - max(0, size - 3).
  const Dim length = end == size ? clamped_position(size - wanted, 0, size, bounds) : end - start;
  return {start, simplify(ceil_div(length, step), bounds), step};
}

std::vector<ValueType> infer_slice(const OpCall& call) {
  TensorType type = tensor_of_min_rank(call, 0, 1);
  const std::size_t dim = dim_attribute(call, "dim", type.rank(), 0);
  const std::int64_t step = call.attributes.integer("step", 1);
  if (step < 1) fail(attribute_place("step"), "step of a slice", std::to_string(step), "1 or more");
  type.shape[dim] = slice_of(call.attributes, type.shape[dim], bounds_of(call)).length;
  return {type};
}

ExprId slice_formula(Formula& f, std::size_t, Index index) {
  const std::size_t dim = dim_attribute(f, "dim", index.size(), 0);
  const Slice slice = slice_of(f.attributes(), f.type(0).shape[dim], f.pool().bounds());
  std::vector<IndexExpr> own(index.begin(), index.end());
  own[dim] = slice.start + slice.step * own[dim];
  return f.load(0, own);
}

// --- select

std::vector<ValueType> infer_select(const OpCall& call) {
  TensorType type = tensor_of_min_rank(call, 0, 1);
  const std::size_t dim = dim_attribute(call, "dim", type.rank());
  const Dim size = type.shape[dim];
  const Dim given = *call.attributes.dim("index");
  const Dim index = wrapped_position(given, size, bounds_of(call));
  const std::string place = attribute_place("index");
  if (given.is_constant() && size.is_constant() &&
      (proves_less(index, 0, bounds_of(call)) || proves_less(size - 1, index, bounds_of(call))))
    fail(place, "index out of range", text_of(call, given), text_of(call, -size) + " to " + text_of(call, size - 1));
  require_at_most(call, 0, index, "the index of a select counts from the front", place);
  require_at_most(call, index + 1, size, "the index of a select lies in the dimension", place);
  type.shape.erase(type.shape.begin() + static_cast<std::ptrdiff_t>(dim));
  return {type};
}

ExprId select_formula(Formula& f, std::size_t, Index index) {
  const TensorType& x = f.type(0);
  const std::size_t dim = dim_attribute(f, "dim", x.rank());
  std::vector<IndexExpr> own(index.begin(), index.end());
  own.insert(own.begin() + static_cast<std::ptrdiff_t>(dim),
             wrapped_position(*f.attributes().dim("index"), x.shape[dim], f.pool().bounds()));
  return f.load(0, own);
}

// --- split, chunk

// The number of pieces if it does not depend on symbols.
std::optional<std::int64_t> fixed(const Dim& count, const Bounds& bounds) {
  const Range range = range_of(count, bounds);
  return range.min == range.max ? std::optional(range.min) : std::nullopt;
}

std::vector<ValueType> pieces(const OpCall& call, std::size_t dim, const std::vector<Dim>& sizes) {
  std::vector<ValueType> types;
  for (const Dim& size : sizes) {
    TensorType type = call.tensor(0);
    type.shape[dim] = simplify(size, bounds_of(call));
    types.emplace_back(std::move(type));
  }
  return types;
}

// `count` pieces of `size`; the last one has the rest.
std::vector<Dim> equal_pieces(const Dim& total, const Dim& size, std::int64_t count, std::string_view attribute) {
  constexpr std::int64_t kMost = 1 << 20;  // each piece is a value of the graph
  if (count > kMost)
    fail(attribute_place(attribute), "too many pieces", std::to_string(count), "at most " + std::to_string(kMost));
  std::vector<Dim> sizes(static_cast<std::size_t>(count), size);
  if (count > 0) sizes.back() = total - size * (count - 1);
  return sizes;
}

std::vector<Dim> pieces_of_size(const OpCall& call, const Dim& total, const Dim& size) {
  const std::string place = attribute_place("split_sizes");
  const Bounds bounds = bounds_of(call);
  if (proves_less(size, 0, bounds) || (size.is(0) && !total.is(0)))
    fail(place, "size of the pieces of a split", text_of(call, size), "1 or more");
  if (size.is(0) || total.is(0)) return {total};
  const Dim count = simplify(ceil_div(total, size), bounds);
  if (const auto known = fixed(count, bounds)) return equal_pieces(total, size, *known, "split_sizes");
  if (call.declared.empty())
    fail(place, "the number of pieces of a split depends on a symbol", text_of(call, count), "a fixed number",
         "outputs that the node declares fix it");
  const auto declared = static_cast<std::int64_t>(call.declared.size());
  require_equal(call, declared, count, "the declared and the actual number of pieces", place);
  return equal_pieces(total, size, declared, "split_sizes");
}

std::vector<ValueType> infer_split(const OpCall& call) {
  const TensorType& x = tensor_of_min_rank(call, 0, 1);
  const std::size_t dim = dim_attribute(call, "dim", x.rank(), 0);
  const AttributeValue* given = call.attributes.find("split_sizes");
  if (const Dim* size = std::get_if<Dim>(given)) return pieces(call, dim, pieces_of_size(call, x.shape[dim], *size));
  const std::vector<Dim> sizes = *call.attributes.dims("split_sizes");
  const std::string place = attribute_place("split_sizes");
  Dim sum = 0;
  for (const Dim& size : sizes) {
    if (proves_less(size, 0, bounds_of(call)))
      fail(place, "negative size of a piece", text_of(call, size), "0 or more");
    sum += size;
  }
  if (sizes.empty()) fail(place, "a split into no pieces", "[]", "one size or more");
  require_equal(call, x.shape[dim], sum, "the dimension and the sum of split_sizes", place);
  return pieces(call, dim, sizes);
}

std::vector<ValueType> infer_chunk(const OpCall& call) {
  const TensorType& x = tensor_of_min_rank(call, 0, 1);
  const std::size_t dim = dim_attribute(call, "dim", x.rank(), 0);
  const std::int64_t chunks = call.attributes.integer("chunks");
  if (chunks < 1) fail(attribute_place("chunks"), "number of chunks", std::to_string(chunks), "1 or more");
  const Bounds bounds = bounds_of(call);
  const Dim total = x.shape[dim];
  const Dim size = simplify(ceil_div(total, chunks), bounds);
  if (total == size * chunks) return pieces(call, dim, equal_pieces(total, size, chunks, "chunks"));
  // Rounding up may give fewer pieces (5 in 4 chunks: 2, 2, 1). For a symbolic size, use the wanted number and check it
  // at launch.
  const Dim count = simplify(ceil_div(total, size), bounds);
  if (const auto known = fixed(count, bounds)) return pieces(call, dim, equal_pieces(total, size, *known, "chunks"));
  const std::int64_t wanted = call.declared.empty() ? chunks : static_cast<std::int64_t>(call.declared.size());
  require_equal(call, wanted, count, "the declared and the actual number of chunks", attribute_place("chunks"));
  return pieces(call, dim, equal_pieces(total, size, wanted, "chunks"));
}

// The offset of a piece. There may be many pieces, so this does not compute all offsets before it.
IndexExpr offset_of_piece(Formula& f, std::size_t dim, std::size_t piece) {
  const auto number = static_cast<std::int64_t>(piece);
  if (const std::int64_t chunks = f.attributes().integer("chunks", 0); chunks > 0)
    return f.simplified(ceil_div(f.type(0).shape[dim], chunks)) * number;
  const AttributeValue* sizes = f.attributes().find("split_sizes");
  if (const Dim* size = std::get_if<Dim>(sizes)) return f.simplified(*size) * number;
  IndexExpr offset = 0;
  std::int64_t known = 0;  // constants are added apart: of thousands of pieces each has thousands before it
  for (const Dim& before : std::span(std::get<std::vector<Dim>>(*sizes)).first(piece))
    if (const auto constant = before.as_constant())
      known += *constant;
    else
      offset += before;
  return f.simplified(offset + known);
}

ExprId piece_formula(Formula& f, std::size_t piece, Index index) {
  const std::size_t dim = dim_attribute(f, "dim", index.size(), 0);
  std::vector<IndexExpr> own(index.begin(), index.end());
  own[dim] += offset_of_piece(f, dim, piece);
  return f.load(0, own);
}

OpDef cutting_row(std::string op, std::string summary, std::vector<AttributeSpec> attributes,
                  std::vector<ValueType> (*infer)(const OpCall&), ExprId (*formula)(Formula&, std::size_t, Index),
                  bool several = false) {
  OpDef def{.name = std::move(op), .family = "movement", .summary = std::move(summary)};
  def.operands = {"x"};
  def.attributes = std::move(attributes);
  def.several = several;
  def.infer = infer;
  def.formula = formula;
  return def;
}

}  // namespace

std::vector<OpDef> cutting_ops() {
  using enum AttributeType;
  return {
      cutting_row("slice", "Every step-th position from start to end of one dimension.",
                  {{"dim", kInteger}, {"start", kDim}, {"end", kDim}, {"step", kInteger}}, infer_slice, slice_formula),
      cutting_row("select", "One position of a dimension, which disappears.",
                  {{"dim", kInteger, true}, {"index", kDim, true}}, infer_select, select_formula),
      cutting_row("split", "Pieces of one size (an integer; the last may be smaller) or of the listed sizes.",
                  {{"split_sizes", kDimOrDims, true}, {"dim", kInteger}}, infer_split, piece_formula, true),
      cutting_row("chunk", "At most that many pieces of equal size, the last one smaller where it must be.",
                  {{"chunks", kInteger, true}, {"dim", kInteger}}, infer_chunk, piece_formula, true),
  };
}

}  // namespace fusec::ops
