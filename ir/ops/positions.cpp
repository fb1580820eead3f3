#include "ir/ops/positions.h"

#include <algorithm>

namespace fusec::ops {
namespace {

// Greater than any dimension, but sums with a dimension do not overflow.
constexpr std::int64_t kFar = std::int64_t{1} << 61;

struct Monomial {
  std::int64_t coefficient;
  std::vector<IndexAtomPtr> factors;
};

Monomial leading(const IndexExpr& e) {
  if (e.is_constant()) return {e.constant_term(), {}};
  const IndexFactors& factors = e.terms()[0].factors;
  return {e.terms()[0].coefficient, {factors.begin(), factors.end()}};
}

IndexExpr atom(const IndexAtomPtr& factor) {
  return from_terms({IndexTerm{1, {factor}}}, 0);
}

std::optional<IndexExpr> divide(Monomial a, const Monomial& b) {
  if (a.coefficient % b.coefficient != 0) return std::nullopt;
  for (const IndexAtomPtr& factor : b.factors) {
    const auto found = std::find_if(a.factors.begin(), a.factors.end(),
                                    [&](const IndexAtomPtr& p) { return atom(p) == atom(factor); });
    if (found == a.factors.end()) return std::nullopt;
    a.factors.erase(found);
  }
  const std::int64_t coefficient = a.coefficient / b.coefficient;
  return a.factors.empty() ? IndexExpr(coefficient) : from_terms({{coefficient, IndexFactors(a.factors)}}, 0);
}

}  // namespace

Dim wrapped_position(const Dim& position, const Dim& size, const Bounds& bounds) {
  if (const auto known = position.as_constant()) {
    if (*known >= 0) return std::min(*known, kFar);
    return simplify(size + std::max(*known, -kFar), bounds);
  }
  if (proves_nonnegative(position, bounds)) return position;
  const Dim not_negative = min(1, max(0, position + 1));  // 1 or 0
  return simplify(position + size * (Dim(1) - not_negative), bounds);
}

Dim clamped_position(const Dim& position, const Dim& low, const Dim& high, const Bounds& bounds) {
  if (position.is(kFar)) return high;
  return simplify(max(low, min(position, high)), bounds);
}

void require_at_most(const OpCall& call, const Dim& smaller, const Dim& greater, const std::string& what,
                     const std::string& place) {
  const Bounds bounds = bounds_of(call);
  if (proves_nonnegative(greater - smaller, bounds)) return;
  if (proves_less(greater, smaller, bounds))
    fail(place, what, text_of(call, smaller), "at most " + text_of(call, greater));
  if (call.checks) call.checks->push_back({simplify(max(smaller, greater), bounds), greater, what});
}

std::optional<Dim> exact_quotient(const Dim& a, const Dim& b) {
  if (b.is(0)) return std::nullopt;
  const Monomial divisor = leading(b);
  Dim rest = a, quotient = 0;
  // Each step removes the leading term. Real dimensions have quotients of fewer terms than the limit.
  for (int step = 0; step < 64; ++step) {
    if (rest.is(0)) return quotient;
    const auto term = divide(leading(rest), divisor);
    if (!term) return std::nullopt;
    quotient += *term;
    rest = rest - *term * b;
  }
  return std::nullopt;
}

E zero(Formula& f, ScalarType type) {
  return {&f.pool(), f.pool().constant(type, std::int64_t{0})};
}

}  // namespace fusec::ops
