#include "ir/type_rules.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <stdexcept>

namespace fusec {
namespace {

constexpr std::size_t kMostDimensions = 64;
constexpr std::size_t kMostShapeTerms = 4096;

// The size in bits; nothing if it overflows for every value of the symbols.
std::optional<IndexExpr> checked_bits(const TensorType& type, const Symbols& symbols) {
  IndexExpr count = 1;
  for (const Dim& dim : type.shape)
    if (dim.is(0)) return IndexExpr(0);
  try {
    for (const Dim& dim : type.shape) {
      if ((count.terms().size() + 1) * (dim.terms().size() + 1) > kMostShapeTerms)
        throw OpError{"", "a shape is too complicated", shape_text(type.shape, symbols),
                      fmt::format("an element count of at most {} terms", kMostShapeTerms)};
      count *= dim;
    }
    count *= bits(type.dtype);
  } catch (const std::overflow_error&) {
    return std::nullopt;
  }
  return count;
}

}  // namespace

std::string shape_text(const Shape& shape, const Symbols& symbols) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (text.size() > 400) {
      text += fmt::format(", ... ({} dimensions)", shape.size());
      break;
    }
    text += (i ? ", " : "") + to_string(shape[i], symbols);
  }
  return text + "]";
}

void check_type(const TensorType& type, const Symbols& symbols, std::vector<LaunchCheck>* checks,
                const std::string& what) {
  const auto found = [&] { return shape_text(type.shape, symbols); };
  if (type.rank() > kMostDimensions)
    throw OpError{"", "too many dimensions", std::to_string(type.rank()), fmt::format("at most {}", kMostDimensions)};
  const Bounds bounds{symbols, {}, {}};
  bool constant = true;
  std::int64_t elements = 1;
  for (const Dim& dim : type.shape) {
    if (const auto value = dim.as_constant()) {
      if (*value < 0) throw OpError{"", "negative dimension", found(), "dimensions of at least 0"};
      continue;
    }
    constant = false;
    const Range range = range_of(dim, bounds);
    if (range.max < 0) throw OpError{"", "negative dimension", found(), "dimensions of at least 0"};
    if (range.min < 0 && checks)
      checks->push_back({max(dim, 0), dim, "a dimension of " + what + " that may be negative"});
  }
  const auto too_large = [&] {
    throw OpError{"", "the element count overflows 63 bits", found(), "fewer than 2^63 elements"};
  };
  if (constant) {
    bool empty = false, overflow = false;
    for (const Dim& dim : type.shape) {
      empty |= dim.is(0);
      overflow |= __builtin_mul_overflow(elements, dim.constant_term(), &elements);
    }
    if (overflow && !empty) too_large();
    std::int64_t bits;
    if (!empty && __builtin_mul_overflow(elements, static_cast<std::int64_t>(fusec::bits(type.dtype)), &bits))
      throw OpError{"", "the size overflows 63 bits", to_string(type, symbols), "fewer than 2^63 bits"};
  } else {
    // Check bits, since the launch computes bytes from the same polynomial.
    const auto size = checked_bits(type, symbols);
    if (!size || range_of(*size, bounds).min == std::numeric_limits<std::int64_t>::max()) too_large();
  }
  if (bits(type.dtype) == 4 && !type.shape.empty()) {
    const IndexExpr odd = simplify(floor_mod(type.shape.back(), 2), bounds);
    if (odd.is(1))
      throw OpError{"", fmt::format("the last dimension of a packed 4-bit type ({}) is odd", name(type.dtype)), found(),
                    "an even last dimension"};
    if (!odd.is(0) && checks) checks->push_back({odd, 0, "the last dimension of " + what + ", which must be even"});
  }
}

bool types_agree(const TensorType& a, const TensorType& b, const Symbols& symbols, std::vector<LaunchCheck>* checks,
                 const std::string& what) {
  if (a.dtype != b.dtype || a.rank() != b.rank()) return false;
  const Bounds bounds{symbols, {}, {}};
  for (std::size_t i = 0; i < a.rank(); ++i) {
    if (a.shape[i] == b.shape[i]) continue;
    const Dim left = simplify(a.shape[i], bounds), right = simplify(b.shape[i], bounds);
    if (left == right) continue;
    if (proves_different(left, right, bounds)) return false;
    if (checks) checks->push_back({left, right, fmt::format("dimension {} of {}", i, what)});
  }
  return true;
}

}  // namespace fusec
