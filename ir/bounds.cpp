#include "ir/bounds.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <tuple>
#include <unordered_map>

#include "ir/budget.h"

namespace fusec {
namespace {

constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();

std::int64_t saturated_product(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  const bool unlimited = a == kLow || a == kHigh || b == kLow || b == kHigh;
  if (unlimited) return (a < 0) == (b < 0) ? kHigh : kLow;
  std::int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return (a < 0) == (b < 0) ? kHigh : kLow;
  return r;
}

std::int64_t saturated_sum(std::int64_t a, std::int64_t b) {
  if (a == kLow || b == kLow) return kLow;
  if (a == kHigh || b == kHigh) return kHigh;
  std::int64_t r;
  if (__builtin_add_overflow(a, b, &r)) return a < 0 ? kLow : kHigh;
  return r;
}

Range product(Range x, Range y) {
  const std::int64_t corners[] = {saturated_product(x.min, y.min), saturated_product(x.min, y.max),
                                  saturated_product(x.max, y.min), saturated_product(x.max, y.max)};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  if (a == kLow || a == kHigh) return a;
  const std::int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

Range range_of_variable(Variable v, const Bounds& bounds) {
  switch (v.kind) {
    case Variable::Kind::kSymbol: {
      const Symbol& s = bounds.symbols.at(v.id);
      const std::int64_t m = s.multiple_of;
      return {(s.min + m - 1) / m * m, s.max / m * m};
    }
    case Variable::Kind::kAxis: {
      const Range extent = range_of(bounds.axes.at(v.id), bounds);
      return {0, std::max<std::int64_t>(0, extent.max == kHigh ? kHigh : extent.max - 1)};
    }
    case Variable::Kind::kValue: {
      if (v.id >= bounds.value_max.size()) return {kLow, kHigh};
      const Range extent = range_of(bounds.value_max[v.id], bounds);
      return {0, std::max<std::int64_t>(0, extent.max == kHigh ? kHigh : extent.max - 1)};
    }
  }
  return {kLow, kHigh};
}

Range range_of_atom(const IndexAtom& atom, const Bounds& bounds) {
  if (atom.kind == IndexAtom::Kind::kVariable) return range_of_variable(atom.variable, bounds);
  const Range a = range_of(atom.a, bounds), b = range_of(atom.b, bounds);
  switch (atom.kind) {
    case IndexAtom::Kind::kFloorDiv: {
      if (b.min <= 0) return {kLow, kHigh};
      const std::int64_t by_high = b.max == kHigh ? (a.min < 0 ? -1 : 0) : floor_quotient(a.min, b.max);
      const std::int64_t high_by_high = b.max == kHigh ? (a.max < 0 ? -1 : 0) : floor_quotient(a.max, b.max);
      return {std::min(floor_quotient(a.min, b.min), by_high), std::max(floor_quotient(a.max, b.min), high_by_high)};
    }
    case IndexAtom::Kind::kMod:
      if (b.min <= 0) return {kLow, kHigh};
      if (a.min >= 0 && a.max < b.min) return a;
      return {0,
              a.min >= 0 ? std::min(a.max, b.max == kHigh ? kHigh : b.max - 1) : (b.max == kHigh ? kHigh : b.max - 1)};
    case IndexAtom::Kind::kMin:
      return {std::min(a.min, b.min), std::min(a.max, b.max)};
    case IndexAtom::Kind::kMax:
      return {std::max(a.min, b.min), std::max(a.max, b.max)};
    case IndexAtom::Kind::kVariable:
      break;
  }
  return {kLow, kHigh};
}

// The extent E of an axis-like variable, of which v <= E - 1 is known symbolically.
const IndexExpr* extent_of(Variable v, const Bounds& bounds) {
  if (v.kind == Variable::Kind::kAxis) return &bounds.axes.at(v.id);
  if (v.kind == Variable::Kind::kValue && v.id < bounds.value_max.size()) return &bounds.value_max[v.id];
  return nullptr;
}

// Replaces, in every term whose other factors cannot be negative, an axis by the end of its range that makes the term
// least: the result is a lower bound in symbols, with n*m - n*i turned into n rather than into an interval.
IndexExpr least_over_axes(IndexExpr e, const Bounds& bounds) {
  for (int round = 0; round < 8; ++round) {
    bool changed = false;
    for (const Variable v : variables_of(e)) {
      const IndexExpr* extent = extent_of(v, bounds);
      if (!extent) continue;
      const IndexExpr at_low =
          substitute(e, [&](Variable w) { return w == v ? std::optional<IndexExpr>(0) : std::nullopt; });
      const IndexExpr slope = e - at_low;  // what v contributes
      int sign = 0;                        // of v's coefficient: +1, -1, 0 unknown
      bool linear = true;
      for (const IndexTerm& term : slope.terms()) {
        Range others{1, 1};
        int occurrences = 0;
        for (const IndexAtomPtr& factor : term.factors) {
          if (factor->kind == IndexAtom::Kind::kVariable && factor->variable == v) {
            ++occurrences;
            continue;
          }
          if (factor->kind != IndexAtom::Kind::kVariable && (mentions(factor->a, v) || mentions(factor->b, v)))
            linear = false;
          others = product(others, range_of_atom(*factor, bounds));
        }
        if (occurrences != 1 || others.min < 0) linear = false;
        const int s = term.coefficient > 0 ? 1 : -1;
        if (sign != 0 && sign != s) linear = false;
        sign = s;
      }
      if (!linear || sign == 0) continue;
      const IndexExpr end = sign > 0 ? IndexExpr(0) : *extent - 1;
      e = substitute(e, [&](Variable w) { return w == v ? std::optional<IndexExpr>(end) : std::nullopt; });
      changed = true;
      break;
    }
    if (!changed) break;
  }
  return e;
}

// Replaces what is taken away of a quotient by the quotient unrounded, which is no less: -8 * (n // 8) by -n.
IndexExpr least_over_quotients(const IndexExpr& e, const Bounds& bounds) {
  IndexExpr least = e.constant_term();
  for (const IndexTerm& term : e.terms()) {
    IndexTerm rest{term.coefficient, {}};
    IndexExpr dividend = 1;
    bool taken = term.coefficient < 0;
    for (const IndexAtomPtr& factor : term.factors) {
      const auto by = factor->kind == IndexAtom::Kind::kFloorDiv ? factor->b.as_constant() : std::nullopt;
      taken = taken && range_of_atom(*factor, bounds).min >= 0;
      if (by && *by > 0 && rest.coefficient % *by == 0 && range_of(factor->a, bounds).min >= 0) {
        rest.coefficient /= *by;
        dividend *= factor->a;
      } else {
        rest.factors.push_back(factor);
      }
    }
    if (!taken)
      least += from_terms({term}, 0);
    else
      least += dividend * (rest.factors.empty() ? IndexExpr(rest.coefficient) : from_terms({rest}, 0));
  }
  return least;
}

// a = unit * quotient + rest with 0 <= rest < unit.
struct Digits {
  std::int64_t unit;
  IndexExpr quotient, rest;
};

// For a division by k: the greatest part of k in whose multiples the rest is no full one, as (15*i + j) for j < 15 and
// k = 45: unit 15, quotient i, rest j.
std::optional<Digits> digits_of(const IndexExpr& a, std::int64_t k, const Bounds& bounds) {
  std::vector<std::int64_t> units;
  for (const IndexTerm& term : a.terms())
    if (const std::int64_t unit = std::gcd(k, term.coefficient); unit > 1 && unit < k) units.push_back(unit);
  std::sort(units.begin(), units.end(), std::greater<>());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  for (const std::int64_t unit : units) {
    const std::int64_t whole_constant = floor_quotient(a.constant_term(), unit);
    Digits digits{unit, whole_constant, a.constant_term() - whole_constant * unit};
    for (const IndexTerm& term : a.terms()) {
      if (term.coefficient % unit == 0)
        digits.quotient += from_terms({{term.coefficient / unit, term.factors}}, 0);
      else
        digits.rest += from_terms({term}, 0);
    }
    if (!digits.rest.is_constant() && proves_nonnegative(digits.rest, bounds) && proves_less(digits.rest, unit, bounds))
      return digits;
  }
  return std::nullopt;
}

// What parts of an expression simplify to, while the whole is simplified: rules simplify the parts of what they made,
// and without memory the time would double with every division inside another.
using SimplifiedParts = std::unordered_map<IndexExpr, IndexExpr>;
IndexExpr simplified_part(const IndexExpr& e, const Bounds& bounds, SimplifiedParts& parts);

IndexExpr simplify_division(const IndexExpr& a, const IndexExpr& b, const Bounds& bounds, SimplifiedParts& parts) {
  const Range divisor = range_of(b, bounds);
  if (divisor.min > 0) {
    // Split the dividend into the part that b divides and a rest in [0, b).
    if (proves_nonnegative(a, bounds) && proves_nonnegative(b - a - 1, bounds)) return 0;
    if (const auto k = b.as_constant()) {
      IndexExpr whole = 0, rest = 0;
      auto add_term = [](IndexExpr& sum, const IndexTerm& term) { sum += from_terms({term}, 0); };
      for (const IndexTerm& term : a.terms()) {
        const IndexExpr alone = from_terms({term}, 0);
        add_term(proves_multiple_of(alone, *k, bounds) ? whole : rest, term);
      }
      rest += a.constant_term();
      if (!whole.is(0) && proves_nonnegative(rest, bounds) && proves_less(rest, b, bounds)) {
        // whole is a multiple of k: divide its terms where the coefficient allows, else keep a division of it alone.
        return floor_div(whole, b);
      }
      if (const auto digits = digits_of(a, *k, bounds))
        return simplified_part(floor_div(digits->quotient, *k / digits->unit), bounds, parts);
    }
  }
  return floor_div(a, b);
}

// x where `e` is x % m, whose multiples the constant k divides into: what is asked of the remainder, x answers as well.
std::optional<IndexExpr> without_remainder(const IndexExpr& e, std::int64_t k) {
  if (e.constant_term() != 0 || e.terms().size() != 1) return std::nullopt;
  const IndexTerm& term = e.terms()[0];
  if (term.coefficient != 1 || term.factors.size() != 1 || term.factors[0]->kind != IndexAtom::Kind::kMod)
    return std::nullopt;
  const auto m = term.factors[0]->b.as_constant();
  return m && k > 0 && *m % k == 0 ? std::optional(term.factors[0]->a) : std::nullopt;
}

IndexExpr simplify_once(const IndexExpr& e, const Bounds& bounds, SimplifiedParts& parts) {
  return rewrite_atoms(e, [&](IndexAtom::Kind kind, IndexExpr a, IndexExpr b) -> IndexExpr {
    switch (kind) {
      case IndexAtom::Kind::kFloorDiv:
        return simplify_division(a, b, bounds, parts);
      case IndexAtom::Kind::kMod: {
        if (range_of(b, bounds).min > 0) {
          if (proves_nonnegative(a, bounds) && proves_nonnegative(b - a - 1, bounds)) return a;
          if (const auto k = b.as_constant()) {
            if (proves_multiple_of(a, *k, bounds)) return 0;
            IndexExpr rest(a.constant_term());
            for (const IndexTerm& term : a.terms()) {
              const IndexExpr alone = from_terms({term}, 0);
              if (!proves_multiple_of(alone, *k, bounds)) rest += alone;
            }
            if (rest != a) return simplified_part(floor_mod(rest, b), bounds, parts);
            if (const auto digits = digits_of(a, *k, bounds))
              return simplified_part(floor_mod(digits->quotient, *k / digits->unit), bounds, parts) * digits->unit +
                     digits->rest;
          }
        }
        return floor_mod(a, b);
      }
      case IndexAtom::Kind::kMin:
        if (proves_nonnegative(b - a, bounds)) return a;
        if (proves_nonnegative(a - b, bounds)) return b;
        return min(a, b);
      case IndexAtom::Kind::kMax:
        if (proves_nonnegative(b - a, bounds)) return b;
        if (proves_nonnegative(a - b, bounds)) return a;
        return max(a, b);
      case IndexAtom::Kind::kVariable:
        break;
    }
    throw std::logic_error("a variable has no operands");
  });
}

// (a // c) * c + a % c = a, for the pairs that stand in one sum.
IndexExpr join_division_and_remainder(const IndexExpr& e) {
  for (const IndexTerm& term : e.terms()) {
    if (term.factors.size() != 1 || term.factors[0]->kind != IndexAtom::Kind::kMod) continue;
    const IndexAtom& mod = *term.factors[0];
    const IndexExpr k(term.coefficient);
    const IndexExpr quotient_times = floor_div(mod.a, mod.b) * mod.b * k;
    const IndexExpr without = e - from_terms({term}, 0) - quotient_times;
    const IndexExpr joined = without + mod.a * k;
    // Either the sum got shorter, or both stood in it whole.
    if (joined.terms().size() < e.terms().size() ||
        without.terms().size() + 1 + quotient_times.terms().size() == e.terms().size())
      return join_division_and_remainder(joined);
  }
  return e;
}

// (a % m) % d as a % d, wherever it stands.
IndexExpr without_inner_remainders(const IndexExpr& e, const IndexExpr& inner) {
  return rewrite_atoms(e, [&](IndexAtom::Kind kind, const IndexExpr& a, const IndexExpr& b) {
    const auto d = kind == IndexAtom::Kind::kMod && a == inner ? b.as_constant() : std::nullopt;
    const auto whole = d ? without_remainder(a, *d) : std::nullopt;
    return combine(kind, whole ? *whole : a, b);
  });
}

// (a // m) * (m / d) + (a % m) // d = a // d, where d divides m and both stand in one sum. Nobody else needs a % m
// then: its remainders are those of a.
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
    return join_quotients(without_inner_remainders(without, quotient.a) + floor_div(*a, *d) * term.coefficient);
  }
  return e;
}

IndexExpr simplified(const IndexExpr& e, const Bounds& bounds, SimplifiedParts& parts) {
  if (e.is_constant() || e.as_variable()) return e;
  IndexExpr now = e;
  for (int round = 0; round < 4; ++round) {
    const IndexExpr next = join_quotients(join_division_and_remainder(simplify_once(now, bounds, parts)));
    if (next == now) break;
    now = next;
  }
  return now;
}

IndexExpr simplified_part(const IndexExpr& e, const Bounds& bounds, SimplifiedParts& parts) {
  const auto known = parts.find(e);
  if (known != parts.end()) return known->second;
  IndexExpr result = simplified(e, bounds, parts);
  parts.emplace(e, result);
  return result;
}

Range range_of_factors(const IndexTerm& term, const Bounds& bounds) {
  Range r{term.coefficient, term.coefficient};
  for (const IndexAtomPtr& factor : term.factors) r = product(r, range_of_atom(*factor, bounds));
  return r;
}

// The symbols of a product, sorted; nothing where there is any other factor.
std::optional<std::vector<std::uint32_t>> symbols_of(const IndexTerm& term) {
  std::vector<std::uint32_t> symbols;
  for (const IndexAtomPtr& factor : term.factors) {
    if (factor->kind != IndexAtom::Kind::kVariable || factor->variable.kind != Variable::Kind::kSymbol)
      return std::nullopt;
    symbols.push_back(factor->variable.id);
  }
  std::ranges::sort(symbols);
  return symbols;
}

// The most that a product of symbols, none negative, can be by what is known of products that hold all of them, or only
// of theirs.
std::int64_t most_of_symbols(const std::vector<std::uint32_t>& symbols, const Bounds& bounds) {
  Range alone{1, 1};
  for (const std::uint32_t s : symbols) alone = product(alone, range_of_variable({Variable::Kind::kSymbol, s}, bounds));
  std::int64_t most = alone.max;
  for (const ProductLimit& limit : bounds.products) {
    std::vector<std::uint32_t> rest;
    const bool inside = std::ranges::includes(limit.symbols, symbols);
    if (!inside && !std::ranges::includes(symbols, limit.symbols)) continue;
    const auto& [whole, part] = inside ? std::tie(limit.symbols, symbols) : std::tie(symbols, limit.symbols);
    std::ranges::set_difference(whole, part, std::back_inserter(rest));
    Range others{1, 1};
    for (const std::uint32_t s : rest)
      others = product(others, range_of_variable({Variable::Kind::kSymbol, s}, bounds));
    if (inside && others.min >= 1) most = std::min(most, limit.max / others.min);
    if (!inside && others.min >= 0) most = std::min(most, saturated_product(limit.max, others.max));
  }
  return most;
}

// What a factor, not negative, can be at most, as `bound` / `divisor`: axes at their ends, quotients of symbols by
// constants unrounded, anything else at its greatest value.
struct FactorBound {
  IndexExpr bound;
  std::int64_t divisor = 1;
};
std::optional<FactorBound> bound_of(const IndexAtom& atom, const Bounds& bounds) {
  const Range range = range_of_atom(atom, bounds);
  if (range.min < 0) return std::nullopt;
  if (atom.kind == IndexAtom::Kind::kVariable) {
    const IndexExpr* extent = extent_of(atom.variable, bounds);
    return FactorBound{extent ? *extent - 1 : IndexExpr::variable(atom.variable)};
  }
  const auto divisor = atom.b.as_constant();
  if (atom.kind == IndexAtom::Kind::kFloorDiv && divisor && *divisor > 0 &&
      std::ranges::all_of(atom.a.terms(), [](const IndexTerm& term) { return symbols_of(term).has_value(); }))
    return FactorBound{atom.a, *divisor};
  if (range.max == kHigh) return std::nullopt;
  return FactorBound{range.max};
}

// The most that the factors' product can be by the limits of products of symbols; kHigh where they say nothing.
std::int64_t most_by_products(const IndexTerm& term, const Bounds& bounds) {
  IndexExpr bound = 1;
  std::int64_t divisor = 1;
  try {
    for (const IndexAtomPtr& factor : term.factors) {
      const auto own = bound_of(*factor, bounds);
      if (!own) return kHigh;
      bound *= own->bound;
      divisor = saturated_product(divisor, own->divisor);
    }
  } catch (const std::overflow_error&) {
    return kHigh;
  }
  std::int64_t most = std::max<std::int64_t>(0, bound.constant_term());
  for (const IndexTerm& part : bound.terms()) {
    const auto symbols = symbols_of(part);
    const Range alone = range_of_factors(part, bounds);
    if (symbols && alone.min >= 0 && part.coefficient > 0)
      most = saturated_sum(most, saturated_product(part.coefficient, most_of_symbols(*symbols, bounds)));
    else
      most = saturated_sum(most, std::max<std::int64_t>(0, alone.max));
  }
  return most == kHigh ? kHigh : most / divisor;
}

}  // namespace

Range range_of(const IndexExpr& e, const Bounds& bounds) {
  count_step();
  Range sum{e.constant_term(), e.constant_term()};
  for (const IndexTerm& term : e.terms()) {
    Range r = range_of_factors(term, bounds);
    if (!bounds.products.empty() && (term.factors.size() > 1 || r.max > INT32_MAX || r.min < INT32_MIN)) {
      const std::int64_t most = saturated_product(term.coefficient, most_by_products(term, bounds));
      if (term.coefficient > 0)
        r.max = std::min(r.max, most);
      else
        r.min = std::max(r.min, most);
    }
    sum = {saturated_sum(sum.min, r.min), saturated_sum(sum.max, r.max)};
  }
  return sum;
}

bool proves_nonnegative(const IndexExpr& e, const Bounds& bounds) {
  if (range_of(e, bounds).min >= 0) return true;
  if (e.is_constant()) return false;
  try {
    const IndexExpr least = least_over_axes(e, bounds);
    if (least != e && range_of(least, bounds).min >= 0) return true;
    const IndexExpr unrounded = least_over_quotients(least, bounds);
    return unrounded != e && range_of(unrounded, bounds).min >= 0;
  } catch (const std::overflow_error&) {
    return false;
  }
}

bool proves_different(const IndexExpr& a, const IndexExpr& b, const Bounds& bounds) {
  const Range difference = range_of(a - b, bounds);
  return difference.min > 0 || difference.max < 0;
}

bool proves_multiple_of(const IndexExpr& e, std::int64_t k, const Bounds& bounds) {
  if (k == 1) return true;
  if (e.constant_term() % k != 0) return false;
  for (const IndexTerm& term : e.terms()) {
    std::int64_t left = k / std::gcd(k, term.coefficient);
    for (const IndexAtomPtr& factor : term.factors) {
      if (factor->kind != IndexAtom::Kind::kVariable || factor->variable.kind != Variable::Kind::kSymbol) continue;
      left /= std::gcd(left, bounds.symbols.at(factor->variable.id).multiple_of);
    }
    if (left != 1) return false;
  }
  return true;
}

IndexExpr simplify(const IndexExpr& e, const Bounds& bounds) {
  SimplifiedParts parts;
  return simplified(e, bounds, parts);
}

}  // namespace fusec
