// interpolate: nearest and bilinear resampling at PyTorch's positions. PyTorch computes positions in the operand's
// compute type (float64 for float64, else float32), and their rounding decides which element is nearest.
#include <bit>
#include <cmath>
#include <numeric>

#include "ir/ops/common.h"
#include "ir/ops/pooling.h"
#include "ir/ops/positions.h"

namespace fusec::ops {
namespace {

using Index = std::span<const IndexExpr>;

bool is_bilinear(const Attributes& attributes) {
  return attributes.text("mode", "nearest") == "bilinear";
}

std::vector<ValueType> infer_interpolate(const OpCall& call) {
  TensorType type = tensor_of_min_rank(call, 0, 3);
  const bool bilinear = is_bilinear(call.attributes);
  if (bilinear) {
    tensor_of_rank(call, 0, 4);
    require_float(call, 0);
  } else if (type.rank() > 5) {
    tensor_of_rank(call, 0, 5);
  }
  if (!bilinear && call.attributes.flag("align_corners", false))
    fail(attribute_place("align_corners"), "align_corners with mode nearest", "true", "false, or mode bilinear");
  const std::vector<Dim> size = *call.attributes.dims("size");
  const std::size_t spatial = type.rank() - 2;
  if (size.size() != spatial && size.size() != 1)
    fail(attribute_place("size"), "wrong number of entries", std::to_string(size.size()),
         "1 or " + std::to_string(spatial));
  for (std::size_t d = 0; d < spatial; ++d) {
    const Dim& wanted = size[size.size() == 1 ? 0 : d];
    require_at_most(call, 1, wanted, "the size of an interpolation is positive", attribute_place("size"));
    require_at_most(call, 1, type.shape[2 + d], "the operand of an interpolation has elements", input_place(0));
    type.shape[2 + d] = wanted;
  }
  return {type};
}

E quotient(Formula& f, const Dim& a, const Dim& b) {
  const E left = f.convert(f.index(a), ScalarType::kFloat32), right = f.convert(f.index(b), ScalarType::kFloat32);
  if (a.is_constant() && b.is_constant())
    return f.number(static_cast<float>(a.constant_term()) / static_cast<float>(b.constant_term()));
  return left / right;
}

// Whether the exact i * in // out equals floor(i * (in / out)) in float32 for every output position.
bool float_agrees_with_exact(std::int64_t in, std::int64_t out) {
  if (out > 65536 || in > (std::int64_t{1} << 40)) return false;  // neither slow nor beyond 63 bits
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  for (std::int64_t i = 0; i < out; ++i)
    if (std::min(static_cast<std::int64_t>(std::floor(static_cast<float>(i) * scale)), in - 1) != i * in / out)
      return false;
  return true;
}

// The operand's position that is nearest to output position `at`.
IndexExpr nearest_position(Formula& f, const IndexExpr& at, const Dim& in, const Dim& out) {
  if (in == out) return at;
  if (out == 2 * in) return f.simplified(floor_div(at, 2));
  if (in.is_constant() && out.is_constant() && float_agrees_with_exact(in.constant_term(), out.constant_term())) {
    if (const auto times = exact_quotient(out, in)) return f.simplified(floor_div(at, *times));
    return f.simplified(floor_div(at * in, out));
  }
  const E position = f.convert(f.index(at), ScalarType::kFloat32) * quotient(f, in, out);
  return f.as_index(f.convert(apply(ExprOp::kFloor, position), ScalarType::kInt64), in);
}

ExprId nearest_formula(Formula& f, Index index) {
  const Shape& in = f.type(0).shape;
  const Shape& out = f.output_type().shape;
  std::vector<IndexExpr> own(index.begin(), index.end());
  for (std::size_t d = 2; d < own.size(); ++d) own[d] = nearest_position(f, own[d], in[d], out[d]);
  return f.load(0, own);
}

// A position between the operand's elements as a fraction: parts / of_element elements from the first one on.
struct ExactPosition {
  IndexExpr parts;
  std::int64_t of_element;
  bool weight;  // the fraction of an element equals PyTorch's float32 weight bit for bit
};

// (at + 0.5) * in / out - 0.5 exactly, if rounding down gives the same element as in float32 for all positions.
std::optional<ExactPosition> exact_position(Formula& f, const IndexExpr& at, const Dim& in, const Dim& out) {
  if (!in.is_constant() || !out.is_constant()) return std::nullopt;
  const std::int64_t i = in.constant_term(), o = out.constant_term();
  if (o > 65536 || i > (std::int64_t{1} << 40)) return std::nullopt;  // neither slow nor beyond 63 bits
  const std::int64_t common = std::gcd(std::gcd(2 * i, 2 * o), i - o);
  const std::int64_t step = 2 * i / common, start = (i - o) / common, of_element = 2 * o / common;
  const float scale = static_cast<float>(i) / static_cast<float>(o);
  bool weight = std::has_single_bit(static_cast<std::uint64_t>(of_element));
  for (std::int64_t k = 0; k < o; ++k) {
    const float product = (static_cast<float>(k) + 0.5f) * scale;
    const float position = std::max(product - 0.5f, 0.0f);
    const std::int64_t parts = std::max<std::int64_t>(step * k + start, 0);
    const std::int64_t low = parts / of_element;
    if (std::min(static_cast<std::int64_t>(std::floor(position)), i - 1) != low) return std::nullopt;
    const float exact = static_cast<float>(parts % of_element) / static_cast<float>(of_element);
    weight = weight && position - static_cast<float>(low) == exact;
  }
  return ExactPosition{f.simplified(max(at * step + start, 0)), of_element, weight};
}

// The two neighbours of an output position in one dimension and the weight of the second.
struct Neighbours {
  IndexExpr low, high;
  E weight;
};

Neighbours neighbours(Formula& f, const IndexExpr& at, const Dim& in, const Dim& out, ScalarType type) {
  if (in == out) return {at, at, zero(f, type)};
  const bool centers = !f.attributes().flag("align_corners", false);
  const auto exact = centers && type == ScalarType::kFloat32 ? exact_position(f, at, in, out) : std::nullopt;
  const auto of = [&](const IndexExpr& low, E weight) {
    return Neighbours{low, f.simplified(min(low + 1, in - 1)), weight};
  };
  if (exact && exact->weight)
    return of(f.simplified(floor_div(exact->parts, exact->of_element)),
              f.convert(f.index(f.simplified(floor_mod(exact->parts, exact->of_element))), type) *
                  f.number(1.0 / static_cast<double>(exact->of_element), type));
  E position = f.convert(f.index(at), type);
  auto ratio = [&](const Dim& a, const Dim& b) {
    if (type == ScalarType::kFloat32) return quotient(f, a, b);
    return f.convert(f.index(a), type) / f.convert(f.index(b), type);
  };
  if (centers)
    position = maximum((position + 0.5) * ratio(in, out) - 0.5, zero(f, type));
  else if (out.is(1))
    position = zero(f, type);
  else
    position = position * ratio(in - 1, out - 1);
  const IndexExpr low = exact ? f.simplified(floor_div(exact->parts, exact->of_element))
                              : f.as_index(f.convert(apply(ExprOp::kFloor, position), ScalarType::kInt64), in);
  return of(low, minimum(maximum(position - f.convert(f.index(low), type), zero(f, type)), f.number(1, type)));
}

ExprId bilinear_formula(Formula& f, Index index) {
  const Shape& in = f.type(0).shape;
  const Shape& out = f.output_type().shape;
  const ScalarType type = compute_type(f.type(0).dtype);
  const Neighbours y = neighbours(f, index[2], in[2], out[2], type);
  const Neighbours x = neighbours(f, index[3], in[3], out[3], type);
  auto along_x = [&](const IndexExpr& row) {
    return (1.0 - x.weight) * f.load(0, {index[0], index[1], row, x.low}) +
           x.weight * f.load(0, {index[0], index[1], row, x.high});
  };
  return (1.0 - y.weight) * along_x(y.low) + y.weight * along_x(y.high);
}

}  // namespace

std::vector<OpDef> resampling_ops() {
  using enum AttributeType;
  OpDef row{.name = "interpolate", .family = "pooling, resampling"};
  row.summary = "The operand resampled to a spatial size: nearest, or bilinear over two dimensions.";
  row.operands = {"x"};
  row.attributes = {{"size", kDims, true}, {"mode", kText, false, {"nearest", "bilinear"}}, {"align_corners", kFlag}};
  row.infer = infer_interpolate;
  row.formula = [](Formula& f, std::size_t, Index index) -> ExprId {
    return is_bilinear(f.attributes()) ? bilinear_formula(f, index) : nearest_formula(f, index);
  };
  return {row};
}

}  // namespace fusec::ops
