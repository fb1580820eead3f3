#include "ir/ops/common.h"

#include <algorithm>
#include <limits>

#include "ir/error.h"

namespace fusec::ops {

std::string input_place(std::size_t operand) {
  return "inputs/" + std::to_string(operand);
}

std::string attribute_place(std::string_view attribute) {
  return "attrs/" + std::string(attribute);
}

void fail(std::string place, std::string what, std::string found, std::string expected, std::string hint) {
  throw OpError{std::move(place), std::move(what), std::move(found), std::move(expected), std::move(hint)};
}

// --- operands

const TensorType& tensor_operand(const OpCall& call, std::size_t operand) {
  if (!call.has(operand)) fail(input_place(operand), "operand missing", "nothing", "a tensor");
  if (call.operands[operand].kind == Operand::Kind::kTuple)
    fail(input_place(operand), "wrong kind of operand", "a tuple", "a tensor", "get_item takes a field of a tuple");
  return call.tensor(operand);
}

const TensorType& tensor_of_rank(const OpCall& call, std::size_t operand, std::size_t rank) {
  const TensorType& type = tensor_operand(call, operand);
  if (type.rank() != rank)
    fail(input_place(operand), "wrong rank", to_string(type, call.symbols), "rank " + std::to_string(rank));
  return type;
}

const TensorType& tensor_of_min_rank(const OpCall& call, std::size_t operand, std::size_t rank) {
  const TensorType& type = tensor_operand(call, operand);
  if (type.rank() < rank)
    fail(input_place(operand), "wrong rank", to_string(type, call.symbols),
         "rank " + std::to_string(rank) + " or more");
  return type;
}

void require_float(const OpCall& call, std::size_t operand) {
  const TensorType& type = tensor_operand(call, operand);
  if (!is_float(type.dtype))
    fail(input_place(operand), "wrong dtype", std::string(name(type.dtype)), "a float dtype",
         "a cast before it gives one");
}

void require_dtype(const OpCall& call, std::size_t operand, std::initializer_list<DType> allowed) {
  const DType dtype = tensor_operand(call, operand).dtype;
  if (std::find(allowed.begin(), allowed.end(), dtype) != allowed.end()) return;
  std::string expected;
  for (const DType& a : allowed) {
    if (!expected.empty()) expected += &a == allowed.end() - 1 ? " or " : ", ";
    expected += name(a);
  }
  fail(input_place(operand), "wrong dtype", std::string(name(dtype)), expected);
}

// --- dtypes

namespace {

[[noreturn]] void no_promotion(DType a, DType b) {
  fail("", "dtypes do not promote", std::string(name(a)) + " and " + std::string(name(b)), "dtypes that promote",
       "cast one of them to the other's dtype");
}

DType promote_floats(DType a, DType b) {
  if (bits(a) <= 8 || bits(b) <= 8) no_promotion(a, b);
  if (bits(a) == bits(b)) return DType::kFloat32;  // float16 and bfloat16
  return bits(a) > bits(b) ? a : b;
}

DType promote_integers(DType a, DType b) {
  const bool wide_unsigned =
      (!info(a).is_signed && bits(a) > 8) || (!info(b).is_signed && bits(b) > 8);  // PyTorch does not promote them
  if (wide_unsigned) no_promotion(a, b);
  if (info(a).is_signed == info(b).is_signed) return bits(a) > bits(b) ? a : b;
  const DType with_sign = info(a).is_signed ? a : b, without = info(a).is_signed ? b : a;
  if (bits(with_sign) > bits(without)) return with_sign;
  return bits(without) == 4 ? DType::kInt8 : DType::kInt16;
}

// 0 for tensors of rank 1 and more, 1 for 0-d tensors, 2 for numbers, 3 for operands without a part in promotion.
int promotion_class(const Operand& o) {
  switch (o.kind) {
    case Operand::Kind::kTensor:
      return o.type.tensor.rank() > 0 ? 0 : 1;
    case Operand::Kind::kNumber:
    case Operand::Kind::kDim:
      return 2;
    case Operand::Kind::kAbsent:
    case Operand::Kind::kTuple:
      break;
  }
  return 3;
}

DType number_dtype(Category category) {
  switch (category) {
    case Category::kBool:
      return DType::kBool;
    case Category::kInteger:
      return DType::kInt64;
    case Category::kFloat:
      break;
  }
  return kDefaultFloat;
}

}  // namespace

DType promote_dtypes(DType a, DType b) {
  if (a == b) return a;
  const Category ca = info(a).category, cb = info(b).category;
  if (ca != cb) return ca > cb ? a : b;
  return ca == Category::kFloat ? promote_floats(a, b) : promote_integers(a, b);
}

DType promote(std::span<const Operand> operands) {
  std::optional<DType> classes[3];
  for (const Operand& o : operands) {
    const int c = promotion_class(o);
    if (c == 3) continue;
    const DType dtype = c < 2                              ? o.type.tensor.dtype
                        : o.kind == Operand::Kind::kNumber ? number_dtype(o.number.category)
                                                           : DType::kInt64;
    classes[c] = classes[c] ? promote_dtypes(*classes[c], dtype) : dtype;
  }
  std::optional<DType> result;
  for (const auto& c : classes)
    if (c && (!result || info(*c).category > info(*result).category)) result = c;
  if (!result) throw InternalError("promotion of no operands");
  return *result;
}

DType promote(const OpCall& call, std::initializer_list<std::size_t> operands) {
  std::vector<Operand> chosen;
  for (const std::size_t i : operands)
    if (call.has(i)) {
      tensor_operand(call, i);
      chosen.push_back(call.operands[i]);
    }
  return promote(chosen);
}

Operand number_operand(const Scalar& number) {
  Operand o;
  o.kind = Operand::Kind::kNumber;
  o.type = TensorType{number_dtype(number.category), {}};
  o.number = number;
  return o;
}

IntegerRange integer_range(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  const int width = bits(dtype) - (info(dtype).is_signed ? 1 : 0);
  const std::int64_t max = width >= 63 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << width) - 1;
  return {info(dtype).is_signed ? -max - 1 : 0, max};
}

Scalar saturated(const Scalar& number, DType dtype) {
  const IntegerRange range = integer_range(dtype);
  if (number.category != Category::kFloat) return Scalar::whole(std::clamp(number.integer, range.min, range.max));
  if (!(number.real > static_cast<double>(range.min))) return Scalar::whole(range.min);
  if (number.real >= static_cast<double>(range.max)) return Scalar::whole(range.max);
  return Scalar::whole(static_cast<std::int64_t>(number.real));
}

// --- dimensions

std::string text_of(const OpCall& call, const Dim& dim) {
  return to_string(dim, call.symbols);
}

std::string text_of(const OpCall& call, const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + text_of(call, shape[i]);
  return text + "]";
}

Dim require_equal(const OpCall& call, const Dim& a, const Dim& b, const std::string& what, const std::string& place) {
  const Bounds bounds = bounds_of(call);
  const Dim left = simplify(a, bounds), right = simplify(b, bounds);
  if (left == right) return left;
  if (proves_different(left, right, bounds)) fail(place, what + " differ", text_of(call, right), text_of(call, left));
  if (call.checks) call.checks->push_back({left, right, what});
  if (left.is_constant() || right.is_constant()) return left.is_constant() ? left : right;
  return left.terms().size() <= right.terms().size() ? left : right;
}

void require_equal_shapes(const OpCall& call, std::span<const Dim> a, std::span<const Dim> b, const std::string& what,
                          const std::string& place) {
  const Shape left(a.begin(), a.end()), right(b.begin(), b.end());
  if (left.size() != right.size()) fail(place, what + " differ", text_of(call, right), text_of(call, left));
  for (std::size_t i = 0; i < left.size(); ++i) require_equal(call, left[i], right[i], what, place);
}

Dim require_divisible(const OpCall& call, const Dim& dim, const Dim& by, const std::string& what,
                      const std::string& place) {
  const Bounds bounds = bounds_of(call);
  if (by.is_constant() && by.constant_term() <= 0) fail(place, what, text_of(call, by), "a divisor of 1 or more");
  const Dim rest = simplify(floor_mod(dim, by), bounds);
  if (rest.is_constant() ? !rest.is(0) : proves_different(rest, 0, bounds))
    fail(place, what, text_of(call, dim), "a multiple of " + text_of(call, by));
  if (!rest.is(0) && call.checks) call.checks->push_back({rest, 0, what});
  return simplify(floor_div(dim, by), bounds);
}

Shape broadcast_shapes(const OpCall& call, const Shape& a, const Shape& b, const std::string& place) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const std::size_t offset = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    Dim& dim = result[offset + i];
    if (shorter[i].is(1)) continue;
    if (dim.is(1))
      dim = shorter[i];
    else if (proves_different(dim, shorter[i], bounds_of(call)))
      fail(place, "shapes do not broadcast", text_of(call, b), "a shape that broadcasts with " + text_of(call, a));
    else
      dim = require_equal(call, dim, shorter[i], "dimensions that broadcast with each other", place);
  }
  return result;
}

Shape broadcast_operands(const OpCall& call, std::initializer_list<std::size_t> operands) {
  Shape shape;
  for (const std::size_t i : operands)
    if (call.has(i)) shape = broadcast_shapes(call, shape, tensor_operand(call, i).shape, input_place(i));
  return shape;
}

void require_broadcastable(const OpCall& call, std::size_t operand, const Shape& to) {
  const Shape& shape = tensor_operand(call, operand).shape;
  auto refuse = [&] {
    fail(input_place(operand), "shape does not broadcast", text_of(call, shape),
         "a shape that broadcasts to " + text_of(call, to));
  };
  if (shape.size() > to.size()) refuse();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Dim& target = to[to.size() - shape.size() + i];
    if (shape[i].is(1)) continue;
    if (proves_different(shape[i], target, bounds_of(call))) refuse();
    require_equal(call, target, shape[i], "dimensions that broadcast with each other", input_place(operand));
  }
}

std::size_t normalize_dim(std::int64_t dim, std::size_t rank, const std::string& place) {
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
  if (dim < -count || dim >= count)
    fail(place, "dimension out of range", std::to_string(dim),
         std::to_string(-count) + " to " + std::to_string(count - 1));
  return static_cast<std::size_t>(dim < 0 ? dim + count : dim);
}

std::vector<std::size_t> normalize_dims(std::span<const std::int64_t> dims, std::size_t rank,
                                        const std::string& place) {
  std::vector<std::size_t> result;
  for (const std::int64_t d : dims) result.push_back(normalize_dim(d, rank, place));
  std::sort(result.begin(), result.end());
  const auto twice = std::adjacent_find(result.begin(), result.end());
  if (twice != result.end())
    fail(place, "dimension given twice", std::to_string(*twice), "each dimension at most once");
  return result;
}

namespace {

std::size_t dim_of(const Attributes& attributes, std::string_view attribute, std::size_t rank,
                   std::optional<std::int64_t> otherwise) {
  const std::int64_t dim = otherwise ? attributes.integer(attribute, *otherwise) : attributes.integer(attribute);
  return normalize_dim(dim, rank, attribute_place(attribute));
}

}  // namespace

std::size_t dim_attribute(const OpCall& call, std::string_view attribute, std::size_t rank,
                          std::optional<std::int64_t> otherwise) {
  return dim_of(call.attributes, attribute, rank, otherwise);
}

std::size_t dim_attribute(const Formula& f, std::string_view attribute, std::size_t rank,
                          std::optional<std::int64_t> otherwise) {
  return dim_of(f.attributes(), attribute, rank, otherwise);
}

std::vector<std::size_t> reduced_dims(const Attributes& attributes, std::size_t rank) {
  const auto listed = attributes.integers("dim");
  std::vector<std::size_t> dims;
  if (listed && !listed->empty()) {
    dims = normalize_dims(*listed, rank, attribute_place("dim"));
    if (rank == 0) dims.clear();
  } else {
    for (std::size_t i = 0; i < rank; ++i) dims.push_back(i);
  }
  return dims;
}

Shape reduced_shape(const Shape& shape, const std::vector<std::size_t>& dims, bool keepdim) {
  Shape result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = std::binary_search(dims.begin(), dims.end(), i);
    if (!reduced)
      result.push_back(shape[i]);
    else if (keepdim)
      result.emplace_back(1);
  }
  return result;
}

// --- formulas

namespace {

// Whether every value of `from` is a value of `to`.
bool holds(DType to, DType from) {
  if (to == from || from == DType::kBool) return true;
  if (!is_float(from) && !is_float(to)) {
    const int spare = info(from).is_signed || !info(to).is_signed ? 0 : 1;
    return bits(to) >= bits(from) + spare && (info(to).is_signed || !info(from).is_signed);
  }
  if (!is_float(from)) {  // an integer in a float: it must fit the significand
    const int magnitude = bits(from) - (info(from).is_signed ? 1 : 0);
    switch (to) {
      case DType::kFloat64:
        return magnitude <= 53;
      case DType::kFloat32:
        return magnitude <= 24;
      case DType::kFloat16:
        return magnitude <= 11;
      case DType::kBFloat16:
        return magnitude <= 8;
      default:
        return false;
    }
  }
  return bits(to) >= 32 && bits(to) > bits(from);
}

}  // namespace

E load_operand(Formula& f, std::size_t operand, Formula::Index index, DType dtype) {
  const E value = f.load_broadcast(operand, index, compute_type(dtype));
  const Operand& o = f.operand(operand);
  const bool scalar = o.kind != Operand::Kind::kTensor || o.type.tensor.rank() == 0;
  if (scalar && is_float(dtype)) return value;
  if (o.kind == Operand::Kind::kTensor && holds(dtype, o.type.tensor.dtype)) return value;
  return f.round(value, dtype);
}

E gelu(E x, std::string_view approximate) {
  if (approximate == "tanh") {
    // 0.5 (1 + tanh(u)) = sigmoid(2u), which has no cancellation for tanh(u) near -1.
    constexpr double kTwice = 2 * 0.79788456080286535588;  // 2 sqrt(2 / pi)
    return x * sigmoid(x * (x * x * (kTwice * 0.044715) + kTwice));
  }
  constexpr double kSqrtHalf = 0.70710678118654752440;
  return x * 0.5 * (erf(x * kSqrtHalf) + 1.0);
}

E wrap(Formula& f, E value, DType dtype) {
  return is_integer(dtype) ? f.round(value, dtype) : value;
}

}  // namespace fusec::ops
