#include "ir/bounds.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <tuple>
#include <unordered_map>

#include "ir/budget.h"
#include "ir/ranges.h"

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

Range range_of_operation(IndexAtom::Kind kind, Range a, Range b) {
  switch (kind) {
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

// The extent E of an axis or loaded index v, for which v <= E - 1 holds; null for a symbol.
const IndexExpr* extent_of(Variable v, const Bounds& bounds) {
  if (v.kind == Variable::Kind::kAxis) return &bounds.axes.at(v.id);
  if (v.kind == Variable::Kind::kValue && v.id < bounds.value_max.size()) return &bounds.value_max[v.id];
  return nullptr;
}

// e = v * slope + rest, with v in neither part. `sign` is that of the slope, which must not change sign.
struct SignedLinear {
  int sign;
  IndexExpr slope, rest;
};
std::optional<SignedLinear> linear_in(const IndexExpr& e, Variable v, Ranges& ranges) {
  int sign = 0;
  IndexExpr slope = 0;
  IndexTerms rest(e.terms().size());
  const auto is_v = [&](const IndexAtomPtr& factor) {
    return factor->kind == IndexAtom::Kind::kVariable && factor->variable == v;
  };
  for (const IndexTerm& term : e.terms()) {
    for (const IndexAtomPtr& factor : term.factors)
      if (factor->kind != IndexAtom::Kind::kVariable && (mentions(factor->a, v) || mentions(factor->b, v)))
        return std::nullopt;
    if (std::ranges::none_of(term.factors, is_v)) {
      rest.push_back(term);
      continue;
    }
    Range others{1, 1};
    IndexTerm without{term.coefficient, IndexFactors(term.factors.size())};
    for (const IndexAtomPtr& factor : term.factors)
      if (!is_v(factor)) without.factors.push_back(factor);
    for (const IndexAtomPtr& factor : without.factors) others = product(others, ranges.of(factor));
    const int s = term.coefficient > 0 ? 1 : -1;
    if (without.factors.size() + 1 != term.factors.size() || others.min < 0 || (sign != 0 && sign != s))
      return std::nullopt;
    sign = s;
    slope += without.factors.empty() ? IndexExpr(without.coefficient) : from_terms({std::move(without)}, 0);
  }
  return SignedLinear{sign, std::move(slope), from_terms(std::move(rest), e.constant_term())};
}

// A symbolic lower bound of e: replaces each axis by the end of its range that makes the term least, if the term's
// other factors are nonnegative. Example: n*m - n*i with i < m becomes n.
IndexExpr least_over_axes(IndexExpr e, Ranges& ranges) {
  for (int round = 0; round < 8; ++round) {
    std::set<Variable> candidates;
    for (const IndexTerm& term : e.terms())
      for (const IndexAtomPtr& factor : term.factors)
        if (factor->kind == IndexAtom::Kind::kVariable && extent_of(factor->variable, ranges.bounds()))
          candidates.insert(factor->variable);
    bool changed = false;
    for (const Variable v : candidates) {
      const std::optional<SignedLinear> linear = linear_in(e, v, ranges);
      if (!linear) continue;
      e = linear->sign > 0 ? linear->rest : linear->rest + linear->slope * (*extent_of(v, ranges.bounds()) - 1);
      changed = true;
      break;
    }
    if (!changed) break;
  }
  return e;
}

// A lower bound of e: replaces subtracted quotients by unrounded ones, which are not less: -8 * (n // 8) becomes -n.
IndexExpr least_over_quotients(const IndexExpr& e, Ranges& ranges) {
  IndexTerms kept(e.terms().size());
  IndexExpr least = 0;
  for (const IndexTerm& term : e.terms()) {
    if (term.coefficient > 0) {
      kept.push_back(term);
      continue;
    }
    IndexTerm rest{term.coefficient, IndexFactors(term.factors.size())};
    IndexExpr dividend = 1;
    bool taken = true;
    for (const IndexAtomPtr& factor : term.factors) {
      if (!taken) break;
      const auto by = factor->kind == IndexAtom::Kind::kFloorDiv ? factor->b.as_constant() : std::nullopt;
      taken = ranges.of(factor).min >= 0;
      if (by && *by > 0 && rest.coefficient % *by == 0 && ranges.of(factor->a).min >= 0) {
        rest.coefficient /= *by;
        dividend *= factor->a;
      } else {
        rest.factors.push_back(factor);
      }
    }
    if (!taken || rest.factors.size() == term.factors.size())
      kept.push_back(term);
    else
      least += dividend * (rest.factors.empty() ? IndexExpr(rest.coefficient) : from_terms({rest}, 0));
  }
  return from_terms(std::move(kept), e.constant_term()) + least;
}

Range range_of_factors(const IndexTerm& term, Ranges& ranges) {
  Range r{term.coefficient, term.coefficient};
  for (const IndexAtomPtr& factor : term.factors) r = product(r, ranges.of(factor));
  return r;
}

// The sorted symbols of a product; nothing if it has any other factor.
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

// An upper bound of a product of nonnegative symbols, from their own bounds and from the limits of products that
// contain all of them or only some of them.
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

// An upper bound of a nonnegative factor: bound / divisor. Axes are at their ends, quotients of symbols by constants
// are unrounded, all other factors are at their greatest value.
struct FactorBound {
  IndexExpr bound;
  std::int64_t divisor = 1;
};
std::optional<FactorBound> bound_of(const IndexAtomPtr& factor, Ranges& ranges) {
  const IndexAtom& atom = *factor;
  const Range range = ranges.of(factor);
  if (range.min < 0) return std::nullopt;
  if (atom.kind == IndexAtom::Kind::kVariable) {
    const IndexExpr* extent = extent_of(atom.variable, ranges.bounds());
    return FactorBound{extent ? *extent - 1 : IndexExpr::variable(atom.variable)};
  }
  const auto divisor = atom.b.as_constant();
  if (atom.kind == IndexAtom::Kind::kFloorDiv && divisor && *divisor > 0 &&
      std::ranges::all_of(atom.a.terms(), [](const IndexTerm& term) { return symbols_of(term).has_value(); }))
    return FactorBound{atom.a, *divisor};
  if (range.max == kHigh) return std::nullopt;
  return FactorBound{range.max};
}

// An upper bound of the term's product of factors from the limits of products of symbols; kHigh without one.
std::int64_t most_by_products(const IndexTerm& term, Ranges& ranges) {
  IndexExpr bound = 1;
  std::int64_t divisor = 1;
  try {
    for (const IndexAtomPtr& factor : term.factors) {
      const auto own = bound_of(factor, ranges);
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
    const Range alone = range_of_factors(part, ranges);
    if (symbols && alone.min >= 0 && part.coefficient > 0)
      most = saturated_sum(most, saturated_product(part.coefficient, most_of_symbols(*symbols, ranges.bounds())));
    else
      most = saturated_sum(most, std::max<std::int64_t>(0, alone.max));
  }
  return most == kHigh ? kHigh : most / divisor;
}

}  // namespace

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  if (a == kLow || a == kHigh) return a;
  const std::int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

Range Ranges::of(const IndexAtomPtr& atom) {
  if (atom->kind == IndexAtom::Kind::kVariable) return range_of_variable(atom->variable, *bounds_);
  const bool shallow = atom->depth < 2;
  if (!shallow)
    if (const auto known = known_.find(atom); known != known_.end()) return known->second;
  const Range range = range_of_operation(atom->kind, of(atom->a), of(atom->b));
  if (!shallow) known_.emplace(atom, range);
  return range;
}

Range Ranges::of(const IndexExpr& e) {
  count_step();
  Range sum{e.constant_term(), e.constant_term()};
  for (const IndexTerm& term : e.terms()) {
    Range r = range_of_factors(term, *this);
    if (!bounds_->products.empty() && (term.factors.size() > 1 || r.max > INT32_MAX || r.min < INT32_MIN)) {
      const std::int64_t most = saturated_product(term.coefficient, most_by_products(term, *this));
      if (term.coefficient > 0)
        r.max = std::min(r.max, most);
      else
        r.min = std::max(r.min, most);
    }
    sum = {saturated_sum(sum.min, r.min), saturated_sum(sum.max, r.max)};
  }
  return sum;
}

bool proves_nonnegative(const IndexExpr& e, Ranges& ranges) {
  if (ranges.of(e).min >= 0) return true;
  if (e.is_constant()) return false;
  try {
    const IndexExpr least = least_over_axes(e, ranges);
    if (least != e && ranges.of(least).min >= 0) return true;
    const IndexExpr unrounded = least_over_quotients(least, ranges);
    return unrounded != e && ranges.of(unrounded).min >= 0;
  } catch (const std::overflow_error&) {
    return false;
  }
}

Range range_of(const IndexExpr& e, const Bounds& bounds) {
  return Ranges(bounds).of(e);
}

bool proves_nonnegative(const IndexExpr& e, const Bounds& bounds) {
  Ranges ranges(bounds);
  return proves_nonnegative(e, ranges);
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

}  // namespace fusec
