#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "ir/bounds.h"
#include "ir/ranges.h"

namespace fusec {
namespace {
IndexExpr simplified_operation(IndexAtom::Kind kind, const IndexExpr& a, const IndexExpr& b,
                               SimplificationMemory& known);
}  // namespace

// What is known about parts of expressions. Rules simplify parts of their results again; without this memory the time
// would double with every nested division.
struct SimplificationMemory {
  explicit SimplificationMemory(const Bounds& bounds)
      : ranges(bounds), rewriter(nullptr, [this](IndexAtom::Kind kind, const IndexExpr& a, const IndexExpr& b) {
          return simplified_operation(kind, a, b, *this);
        }) {}
  SimplificationMemory(const SimplificationMemory&) = delete;
  SimplificationMemory& operator=(const SimplificationMemory&) = delete;

  Ranges ranges;
  IndexRewriter rewriter;  // one simplification of every atom
  std::unordered_map<IndexExpr, IndexExpr> parts;
};

namespace {

// a = unit * quotient + rest with 0 <= rest < unit.
struct Digits {
  std::int64_t unit;
  IndexExpr quotient, rest;
};

// Splits `a` for a division by k: finds the greatest divisor `unit` of k with a = unit * quotient + rest and
// 0 <= rest < unit. Example: 15*i + j with j < 15 and k = 45 gives unit 15, quotient i, rest j.
std::optional<Digits> digits_of(const IndexExpr& a, std::int64_t k, Ranges& ranges) {
  std::vector<std::int64_t> units;
  for (const IndexTerm& term : a.terms())
    if (const std::int64_t unit = std::gcd(k, term.coefficient); unit > 1 && unit < k) units.push_back(unit);
  std::sort(units.begin(), units.end(), std::greater<>());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  for (const std::int64_t unit : units) {
    const std::int64_t whole_constant = floor_quotient(a.constant_term(), unit);
    IndexTerms quotient(a.terms().size()), rest(a.terms().size());
    for (const IndexTerm& term : a.terms()) {
      if (term.coefficient % unit == 0)
        quotient.push_back({term.coefficient / unit, term.factors});
      else
        rest.push_back(term);
    }
    Digits digits{unit, from_terms(std::move(quotient), whole_constant),
                  from_terms(std::move(rest), a.constant_term() - whole_constant * unit)};
    if (!digits.rest.is_constant() && proves_nonnegative(digits.rest, ranges) && proves_less(digits.rest, unit, ranges))
      return digits;
  }
  return std::nullopt;
}

IndexExpr simplified_part(const IndexExpr& e, SimplificationMemory& known);

// Splits e into the terms that are not multiples of k, and those that are.
std::pair<IndexExpr, IndexExpr> without_multiples(const IndexExpr& e, std::int64_t k, const Bounds& bounds) {
  IndexTerms rest(e.terms().size()), whole(e.terms().size());
  for (const IndexTerm& term : e.terms())
    (proves_multiple_of(from_terms({term}, 0), k, bounds) ? whole : rest).push_back(term);
  return {from_terms(std::move(rest), e.constant_term()), from_terms(std::move(whole), 0)};
}

IndexExpr simplify_division(const IndexExpr& a, const IndexExpr& b, SimplificationMemory& known) {
  Ranges& ranges = known.ranges;
  if (ranges.of(b).min > 0) {
    // Split the dividend into the part that b divides and a rest in [0, b).
    if (proves_nonnegative(a, ranges) && proves_nonnegative(b - a - 1, ranges)) return 0;
    if (const auto k = b.as_constant()) {
      const auto [rest, whole] = without_multiples(a, *k, ranges.bounds());
      if (!whole.is(0) && proves_nonnegative(rest, ranges) && proves_less(rest, b, ranges)) {
        // `whole` is a multiple of k, so rest / b adds nothing.
        return floor_div(whole, b);
      }
      if (const auto digits = digits_of(a, *k, ranges))
        return simplified_part(floor_div(digits->quotient, *k / digits->unit), known);
    }
  }
  return floor_div(a, b);
}

// x if `e` is x % m and the constant k divides m: then e % k equals x % k.
std::optional<IndexExpr> without_remainder(const IndexExpr& e, std::int64_t k) {
  if (e.constant_term() != 0 || e.terms().size() != 1) return std::nullopt;
  const IndexTerm& term = e.terms()[0];
  if (term.coefficient != 1 || term.factors.size() != 1 || term.factors[0]->kind != IndexAtom::Kind::kMod)
    return std::nullopt;
  const auto m = term.factors[0]->b.as_constant();
  return m && k > 0 && *m % k == 0 ? std::optional(term.factors[0]->a) : std::nullopt;
}

IndexExpr simplify_remainder(const IndexExpr& a, const IndexExpr& b, SimplificationMemory& known) {
  Ranges& ranges = known.ranges;
  if (ranges.of(b).min > 0) {
    if (proves_nonnegative(a, ranges) && proves_nonnegative(b - a - 1, ranges)) return a;
    if (const auto k = b.as_constant()) {
      if (proves_multiple_of(a, *k, ranges.bounds())) return 0;
      const auto [rest, whole] = without_multiples(a, *k, ranges.bounds());
      if (!whole.is(0)) return simplified_part(floor_mod(rest, b), known);
      if (const auto digits = digits_of(a, *k, ranges))
        return simplified_part(floor_mod(digits->quotient, *k / digits->unit), known) * digits->unit + digits->rest;
    }
  }
  return floor_mod(a, b);
}

// The operation of operands that are simplified already.
IndexExpr simplified_operation(IndexAtom::Kind kind, const IndexExpr& a, const IndexExpr& b,
                               SimplificationMemory& known) {
  Ranges& ranges = known.ranges;
  switch (kind) {
    case IndexAtom::Kind::kFloorDiv:
      return simplify_division(a, b, known);
    case IndexAtom::Kind::kMod:
      return simplify_remainder(a, b, known);
    case IndexAtom::Kind::kMin:
      if (proves_nonnegative(b - a, ranges)) return a;
      if (proves_nonnegative(a - b, ranges)) return b;
      return min(a, b);
    case IndexAtom::Kind::kMax:
      if (proves_nonnegative(b - a, ranges)) return b;
      if (proves_nonnegative(a - b, ranges)) return a;
      return max(a, b);
    case IndexAtom::Kind::kVariable:
      break;
  }
  throw std::logic_error("a variable has no operands");
}

// Candidates for the dividend of the remainder `mod`, to match a quotient in the sum e: its own dividend, and dividends
// of quotients by the same divisor with an equal remainder. floor_mod simplifies (x % 40) % 4 to x % 4, but
// (x % 40) // 4 stays; the identity still holds: ((x % 40) // 4) * 4 + x % 4 = x % 40.
std::vector<IndexExpr> dividends_of(const IndexTerm& mod, const IndexExpr& e) {
  std::vector<IndexExpr> found = {mod.factors[0]->a};
  for (const IndexTerm& term : e.terms())
    for (const IndexAtomPtr& factor : term.factors)
      if (factor->kind == IndexAtom::Kind::kFloorDiv && factor->b == mod.factors[0]->b && factor->a != found[0] &&
          floor_mod(factor->a, factor->b) * mod.coefficient == from_terms({mod}, 0))
        found.push_back(factor->a);
  return found;
}

// Applies (a // c) * c + a % c = a to pairs in one sum.
IndexExpr join_division_and_remainder(const IndexExpr& e) {
  if (e.terms().size() < 2) return e;
  for (const IndexTerm& term : e.terms()) {
    if (term.factors.size() != 1 || term.factors[0]->kind != IndexAtom::Kind::kMod) continue;
    const IndexExpr &divisor = term.factors[0]->b, k(term.coefficient);
    for (const IndexExpr& a : dividends_of(term, e)) {
      const IndexExpr quotient_times = floor_div(a, divisor) * divisor * k;
      const IndexExpr without = e - from_terms({term}, 0) - quotient_times;
      const IndexExpr joined = without + a * k;
      // Accept it if the sum got shorter, or if both parts were complete terms of it.
      if (joined.terms().size() < e.terms().size() ||
          without.terms().size() + 1 + quotient_times.terms().size() == e.terms().size())
        return join_division_and_remainder(joined);
    }
  }
  return e;
}

// Applies (a // m) * (m / d) + (a % m) // d = a // d to pairs in one sum, for d that divides m.
IndexExpr join_quotients(const IndexExpr& e) {
  for (const IndexTerm& term : e.terms()) {
    if (term.factors.size() != 1 || term.factors[0]->kind != IndexAtom::Kind::kFloorDiv) continue;
    const IndexAtom& quotient = *term.factors[0];
    const auto d = quotient.b.as_constant();
    const auto a = d ? without_remainder(quotient.a, *d) : std::nullopt;
    if (!a) continue;
    const std::int64_t m = *quotient.a.terms()[0].factors[0]->b.as_constant();
    const IndexExpr here = from_terms({term}, 0), above = floor_div(*a, m) * (m / *d * term.coefficient);
    const IndexExpr without = e - here - above;
    if (without.terms().size() + 1 + above.terms().size() != e.terms().size()) continue;
    return join_quotients(without + floor_div(*a, *d) * term.coefficient);
  }
  return e;
}

// Whether e has any atom but variables. A polynomial of variables needs no simplification.
bool has_operations(const IndexExpr& e) {
  return std::ranges::any_of(e.terms(), [](const IndexTerm& term) {
    return std::ranges::any_of(term.factors,
                               [](const IndexAtomPtr& f) { return f->kind != IndexAtom::Kind::kVariable; });
  });
}

IndexExpr simplified(const IndexExpr& e, SimplificationMemory& known) {
  if (!has_operations(e)) return e;
  IndexExpr now = e;
  for (int round = 0; round < 4; ++round) {
    const IndexExpr next = join_quotients(join_division_and_remainder(known.rewriter(now)));
    if (next == now) break;
    now = next;
  }
  return now;
}

IndexExpr simplified_part(const IndexExpr& e, SimplificationMemory& known) {
  const auto before = known.parts.find(e);
  if (before != known.parts.end()) return before->second;
  IndexExpr result = simplified(e, known);
  known.parts.emplace(e, result);
  return result;
}

}  // namespace

IndexExpr simplify(const IndexExpr& e, const Bounds& bounds) {
  if (!has_operations(e)) return e;
  SimplificationMemory known(bounds);
  return simplified(e, known);
}

IndexSimplifier::IndexSimplifier() = default;
IndexSimplifier::~IndexSimplifier() = default;
IndexSimplifier::IndexSimplifier(const IndexSimplifier&) {}
IndexSimplifier::IndexSimplifier(IndexSimplifier&&) noexcept = default;
IndexSimplifier& IndexSimplifier::operator=(IndexSimplifier&&) noexcept = default;
IndexSimplifier& IndexSimplifier::operator=(const IndexSimplifier& other) {
  if (this != &other) forget();
  return *this;
}

IndexExpr IndexSimplifier::operator()(const IndexExpr& e, const Bounds& bounds) {
  if (!has_operations(e)) return e;
  if (!known_) known_ = std::make_unique<SimplificationMemory>(bounds);
  known_->ranges.set_bounds(bounds);
  return simplified(e, *known_);
}

void IndexSimplifier::forget() {
  known_.reset();
}

}  // namespace fusec
