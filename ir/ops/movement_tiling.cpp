// pad, flip, roll, repeat, repeat_interleave, tril, triu: ops that fold, shift or mask positions of a dimension.
#include <algorithm>
#include <cmath>

#include "ir/ops/movement.h"
#include "ir/ops/positions.h"
#include "ir/ops/reshape.h"

namespace fusec::ops {
namespace {

using Index = std::span<const IndexExpr>;

// Greater than any dimension, but sums with positions do not overflow.
constexpr std::int64_t kMostOffset = std::int64_t{1} << 61;

// --- pad

struct Padding {
  Dim before, after;
};

// The padding of each dimension. The attribute lists pairs from the last dimension backwards.
std::vector<Padding> paddings(const Attributes& attributes, std::size_t rank) {
  std::vector<Padding> result(rank, {0, 0});
  const std::vector<Dim> listed = *attributes.dims("pad");
  for (std::size_t pair = 0; 2 * pair + 1 < listed.size() && pair < rank; ++pair)
    result[rank - 1 - pair] = {listed[2 * pair], listed[2 * pair + 1]};
  return result;
}

std::vector<ValueType> infer_pad(const OpCall& call) {
  TensorType type = tensor_operand(call, 0);
  const std::string place = attribute_place("pad");
  const std::size_t listed = call.attributes.dims("pad")->size();
  if (listed % 2 != 0 || listed / 2 > type.rank())
    fail(place, "wrong number of paddings", std::to_string(listed),
         "an even number up to " + std::to_string(2 * type.rank()));
  const std::string mode = call.attributes.text("mode", "constant");
  if (call.attributes.has("value") && !is_float(type.dtype) &&
      !std::isfinite(call.attributes.scalar("value").as_double()))
    fail(attribute_place("value"), "value out of the range of its dtype", "not finite",
         "a value of " + std::string(name(type.dtype)));
  const std::vector<Padding> padding = paddings(call.attributes, type.rank());
  for (std::size_t d = 0; d < type.rank(); ++d) {
    const Dim size = type.shape[d];
    const std::string what = "the padding of dimension " + std::to_string(d) + " with mode " + mode;
    for (const Dim& side : {padding[d].before, padding[d].after}) {
      if (const auto count = side.as_constant(); count && (*count < -kMostOffset || *count > kMostOffset))
        fail(place, "padding out of range", std::to_string(*count), "at most 2^61 either way");
      if (mode == "reflect" && !side.is(0)) require_at_most(call, side + 1, size, what, place);
      if (mode == "circular") require_at_most(call, side, size, what, place);
    }
    const Dim padded = simplify(size + padding[d].before + padding[d].after, bounds_of(call));
    if (proves_less(padded, 0, bounds_of(call)))
      fail(place, what + " crops more than there is", text_of(call, padded), "0 or more");
    require_at_most(call, 0, padded, what, place);
    type.shape[d] = padded;
  }
  return {type};
}

// The position in [0, size) that a position of the unpadded dimension, possibly outside it, reads. With circular
// padding, negative padding (a crop) is applied first, so cropped elements do not wrap around.
IndexExpr folded_position(const IndexExpr& position, const Dim& size, const Padding& padding, const std::string& mode) {
  if (mode == "circular") {
    const Dim front = max(-padding.before, 0), back = max(-padding.after, 0);
    const Dim left = size - front - back;
    return left.is(0) ? IndexExpr(0) : floor_mod(position - front, left) + front;
  }
  if (mode == "replicate") return min(max(position, 0), size - 1);
  const IndexExpr from_front = max(position, -position);
  return min(from_front, 2 * (size - 1) - from_front);
}

ExprId pad_formula(Formula& f, std::size_t, Index index) {
  const TensorType& x = f.type(0);
  const std::string mode = f.attributes().text("mode", "constant");
  const std::vector<Padding> padding = paddings(f.attributes(), x.rank());
  std::vector<IndexExpr> own(index.begin(), index.end());
  E inside = f.boolean(true);
  for (std::size_t d = 0; d < own.size(); ++d) {
    if (padding[d].before.is(0) && padding[d].after.is(0)) continue;
    own[d] = own[d] - padding[d].before;
    if (mode == "constant")
      inside = inside && f.inside(own[d], x.shape[d]);
    else if (!x.shape[d].is(0))
      own[d] = f.simplified(folded_position(own[d], x.shape[d], padding[d], mode));
  }
  if (mode != "constant") return f.load(0, own);
  const ScalarType type = compute_type(x.dtype);
  const Scalar value = f.attributes().has("value") ? f.attributes().scalar("value") : Scalar::whole(0);
  return f.guarded(
      inside, [&] { return f.load(0, own); }, wrap(f, f.scalar(value, type), x.dtype));
}

// --- flip, roll

std::vector<ValueType> infer_flip(const OpCall& call) {
  const TensorType& x = tensor_operand(call, 0);
  normalize_dims(*call.attributes.integers("dims"), x.rank(), attribute_place("dims"));
  return {x};
}

ExprId flip_formula(Formula& f, std::size_t, Index index) {
  const Shape& shape = f.type(0).shape;
  std::vector<IndexExpr> own(index.begin(), index.end());
  for (const std::size_t d : normalize_dims(*f.attributes().integers("dims"), shape.size(), attribute_place("dims")))
    if (d < own.size()) own[d] = shape[d] - 1 - own[d];
  return f.load(0, own);
}

std::vector<ValueType> infer_roll(const OpCall& call) {
  const TensorType& x = tensor_operand(call, 0);
  const std::vector<std::int64_t> given = *call.attributes.integers("shifts");
  for (const std::int64_t shift : given)
    if (shift < -kMostOffset || shift > kMostOffset)
      fail(attribute_place("shifts"), "shift out of range", std::to_string(shift), "at most 2^61 either way");
  const std::size_t shifts = given.size();
  const auto dims = call.attributes.integers("dims");
  const std::size_t wanted = dims && !dims->empty() ? dims->size() : 1;
  if (shifts != wanted)
    fail(attribute_place("shifts"), "wrong number of shifts", std::to_string(shifts), std::to_string(wanted));
  if (dims)
    for (const std::int64_t d : *dims) normalize_dim(d, x.rank(), attribute_place("dims"));
  return {x};
}

IndexExpr rolled(const IndexExpr& position, std::int64_t shift, const Dim& size) {
  if (const auto known = size.as_constant()) {
    if (*known == 0) return position;
    shift %= *known;  // in [0, size), so that the remainder below has no negative dividend
    if (shift > 0) shift -= *known;
  }
  return floor_mod(position - shift, size);
}

ExprId roll_formula(Formula& f, std::size_t, Index index) {
  const Shape& shape = f.type(0).shape;
  const std::vector<std::int64_t> shifts = *f.attributes().integers("shifts");
  const auto dims = f.attributes().integers("dims");
  std::vector<IndexExpr> own(index.begin(), index.end());
  if (dims && !dims->empty()) {
    for (std::size_t n = 0; n < dims->size(); ++n) {
      const std::size_t d = normalize_dim((*dims)[n], shape.size(), attribute_place("dims"));
      if (d < own.size()) own[d] = f.simplified(rolled(own[d], shifts[n], shape[d]));
    }
    return f.load(0, own);
  }
  const Dim count = element_count(shape).value_or(Dim(0));
  const std::vector<IndexExpr> flat{f.simplified(rolled(flat_index(shape, own), shifts[0], count))};
  return f.load(0, reshaped_index(shape, {count}, flat, f.pool()));
}

// --- repeat, repeat_interleave

std::vector<ValueType> infer_repeat(const OpCall& call) {
  const TensorType& x = tensor_operand(call, 0);
  const std::string place = attribute_place("repeats");
  Shape shape = *call.attributes.dims("repeats");
  if (shape.size() < x.rank())
    fail(place, "too few repeats", std::to_string(shape.size()),
         "one for each of " + std::to_string(x.rank()) + " dimensions or more");
  for (const Dim& times : shape)
    if (proves_less(times, 0, bounds_of(call)))
      fail(place, "negative number of repeats", text_of(call, times), "0 or more");
  const std::size_t leading = shape.size() - x.rank();
  for (std::size_t d = 0; d < x.rank(); ++d)
    shape[leading + d] = simplify(shape[leading + d] * x.shape[d], bounds_of(call));
  return {TensorType{x.dtype, std::move(shape)}};
}

ExprId repeat_formula(Formula& f, std::size_t, Index index) {
  const Shape& shape = f.type(0).shape;
  std::vector<IndexExpr> own(shape.size());
  for (std::size_t d = 0; d < own.size(); ++d) {
    const IndexExpr& position = index[index.size() - own.size() + d];
    own[d] = shape[d].is(0) ? IndexExpr(0) : f.simplified(floor_mod(position, shape[d]));
  }
  return f.load(0, own);
}

std::vector<ValueType> infer_repeat_interleave(const OpCall& call) {
  TensorType type = tensor_operand(call, 0);
  const Dim repeats = *call.attributes.dim("repeats");
  if (proves_less(repeats, 0, bounds_of(call)))
    fail(attribute_place("repeats"), "negative number of repeats", text_of(call, repeats), "0 or more");
  std::size_t dim = 0;
  if (call.attributes.has("dim") && type.rank() > 0) {
    dim = dim_attribute(call, "dim", type.rank());
  } else {
    const auto count = element_count(type.shape);
    if (!count) fail(attribute_place("repeats"), "element count overflows 63 bits");
    type.shape = {*count};
  }
  type.shape[dim] = simplify(type.shape[dim] * repeats, bounds_of(call));
  return {type};
}

ExprId repeat_interleave_formula(Formula& f, std::size_t, Index index) {
  const Shape& shape = f.type(0).shape;
  const Dim repeats = *f.attributes().dim("repeats");
  const bool whole = !f.attributes().has("dim") || shape.empty();
  const std::size_t dim = whole ? 0 : dim_attribute(f, "dim", shape.size());
  std::vector<IndexExpr> own(index.begin(), index.end());
  if (!repeats.is(0)) own[dim] = f.simplified(floor_div(own[dim], repeats));
  if (!whole) return f.load(0, own);
  const Dim count = element_count(shape).value_or(Dim(0));
  return f.load(0, reshaped_index(shape, {count}, own, f.pool()));
}

// --- tril, triu

std::vector<ValueType> infer_triangle(const OpCall& call) {
  return {tensor_of_min_rank(call, 0, 2)};
}

// The elements with column - row <= diagonal, or >= diagonal; zero elsewhere.
E triangle(Formula& f, Index index, bool lower) {
  const std::int64_t diagonal = std::clamp(f.attributes().integer("diagonal", 0), -kMostOffset, kMostOffset);
  const IndexExpr beyond = index[index.size() - 1] - index[index.size() - 2] - diagonal;
  const E keep{&f.pool(), f.pool().nonnegative(lower ? -beyond : beyond)};
  return f.guarded(
      keep, [&] { return f.load(0, index); }, zero(f, compute_type(f.type(0).dtype)));
}

ExprId tril_formula(Formula& f, std::size_t, Index index) {
  return triangle(f, index, true);
}

ExprId triu_formula(Formula& f, std::size_t, Index index) {
  return triangle(f, index, false);
}

OpDef tiling_row(std::string op, std::string summary, std::vector<AttributeSpec> attributes,
                 std::vector<ValueType> (*infer)(const OpCall&), ExprId (*formula)(Formula&, std::size_t, Index)) {
  OpDef def{.name = std::move(op), .family = "movement", .summary = std::move(summary)};
  def.operands = {"x"};
  def.attributes = std::move(attributes);
  def.infer = infer;
  def.formula = formula;
  return def;
}

}  // namespace

std::vector<OpDef> tiling_ops() {
  using enum AttributeType;
  return {
      tiling_row("pad", "Adds elements before and after dimensions, the last first; a negative count crops.",
                 {{"pad", kDims, true},
                  {"mode", kText, false, {"constant", "reflect", "replicate", "circular"}},
                  {"value", kScalar}},
                 infer_pad, pad_formula),
      tiling_row("flip", "Reverses the order along dimensions.", {{"dims", kIntegers, true}}, infer_flip, flip_formula),
      tiling_row("roll",
                 "Shifts along dimensions, what leaves at one end enters at the other; without dims the flat order.",
                 {{"shifts", kIntegers, true}, {"dims", kIntegers}}, infer_roll, roll_formula),
      tiling_row("repeat", "The whole tensor that many times along each dimension.", {{"repeats", kDims, true}},
                 infer_repeat, repeat_formula),
      tiling_row("repeat_interleave",
                 "Each element that many times in a row along a dimension; without dim the flat order.",
                 {{"repeats", kDim, true}, {"dim", kInteger}}, infer_repeat_interleave, repeat_interleave_formula),
      tiling_row("tril", "The lower triangle of the last two dimensions, zero above the diagonal.",
                 {{"diagonal", kInteger}}, infer_triangle, tril_formula),
      tiling_row("triu", "The upper triangle of the last two dimensions, zero below the diagonal.",
                 {{"diagonal", kInteger}}, infer_triangle, triu_formula),
  };
}

}  // namespace fusec::ops
