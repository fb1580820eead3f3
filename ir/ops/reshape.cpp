#include "ir/ops/reshape.h"

#include <algorithm>
#include <stdexcept>

#include "ir/ops/positions.h"

namespace fusec::ops {
namespace {

bool has_zero(const Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is(0); });
}

// Removes common dimensions from both shapes, since they do not decide whether the element counts agree.
void cancel_common(Shape& a, Shape& b) {
  for (std::size_t i = a.size(); i-- > 0;) {
    const auto other = std::find(b.begin(), b.end(), a[i]);
    if (other == b.end()) continue;
    b.erase(other);
    a.erase(a.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

Dim count_of(const Shape& shape, const std::string& place) {
  try {
    if (const auto count = element_count(shape)) return *count;
  } catch (const std::overflow_error&) {
  }
  fail(place, "element count overflows 63 bits");
}

// The dimension that -1 stands for: total / known.
Dim missing_dimension(const OpCall& call, const Dim& total, const Dim& known, const std::string& place) {
  if (const auto quotient = exact_quotient(total, known)) return simplify(*quotient, bounds_of(call));
  return require_divisible(call, total, known, "the element count of a reshape", place);
}

struct Group {
  std::size_t from_begin, from_end, to_begin, to_end;
};

// Cuts both shapes, from the right, at each point with equal element counts to its right on both sides.
std::vector<Group> matched_groups(const Shape& from, const Shape& to) {
  std::vector<Group> groups;
  std::size_t from_end = from.size(), to_end = to.size(), to_least = to.size();
  Dim from_count = 1, to_count = 1;
  for (std::size_t i = from.size(); i-- > 0;) {
    from_count *= from[i];
    Dim candidate = to_count;
    for (std::size_t o = to_least; o-- > 0;) {
      candidate *= to[o];
      if (candidate != from_count) continue;
      groups.push_back({i, from_end, o, to_end});
      from_end = i;
      to_end = to_least = o;
      to_count = candidate;
      break;
    }
  }
  // The rest: leading dimensions of 1, or dimensions with counts that only the launch can compare.
  if (from_end > 0 || to_end > 0) groups.push_back({0, from_end, 0, to_end});
  return groups;
}

}  // namespace

Shape resolved_shape(const OpCall& call, const Shape& from, const std::vector<Dim>& wanted, const std::string& place) {
  Shape to, known;
  std::optional<std::size_t> missing;
  for (const Dim& dim : wanted) {
    if (dim.is(-1)) {
      if (missing) fail(place, "-1 stands twice", text_of(call, wanted), "one -1 at most");
      missing = to.size();
    } else if (proves_less(dim, 0, bounds_of(call))) {
      fail(place, "negative dimension", text_of(call, dim), "a dimension of 0 or more, or -1");
    } else {
      known.push_back(dim);
    }
    to.push_back(dim);
  }
  auto refuse = [&] {
    fail(place, "a reshape keeps the number of elements", text_of(call, wanted),
         "as many elements as " + text_of(call, from));
  };
  if (has_zero(from)) {
    if (missing && has_zero(known))
      fail(place, "-1 is ambiguous beside a dimension of 0", text_of(call, wanted), "the dimension itself");
    if (missing) to[*missing] = 0;
    if (!has_zero(to)) refuse();
    return to;
  }
  Shape left = from;
  cancel_common(left, known);
  const Dim total = count_of(left, place), rest = count_of(known, place);
  if (missing) {
    if (total.is_constant() && rest.is_constant() && (rest.is(0) || total.constant_term() % rest.constant_term() != 0))
      refuse();
    to[*missing] = missing_dimension(call, total, rest, place);
  } else {
    if (proves_different(total, rest, bounds_of(call))) refuse();
    require_equal(call, total, rest, "the element counts of a reshape", place);
  }
  return to;
}

std::vector<IndexExpr> reshaped_index(const Shape& from, const Shape& to, std::span<const IndexExpr> index,
                                      ExprPool& pool) {
  std::vector<IndexExpr> result(from.size(), IndexExpr(0));
  if (has_zero(from) || has_zero(to)) return result;  // the tensor is empty
  for (const Group& group : matched_groups(from, to)) {
    IndexExpr flat = 0;
    for (std::size_t o = group.to_begin; o < group.to_end; ++o)
      flat = flat * to[o] + (to[o].is(1) ? IndexExpr(0) : index[o]);
    flat = pool.simplified(flat);
    std::size_t first = group.from_begin;
    while (first < group.from_end && from[first].is(1)) ++first;
    for (std::size_t i = group.from_end; i-- > first;) {
      if (i == first) {
        result[i] = flat;
        break;
      }
      result[i] = pool.simplified(floor_mod(flat, from[i]));
      flat = pool.simplified(floor_div(flat, from[i]));
    }
  }
  return result;
}

}  // namespace fusec::ops
