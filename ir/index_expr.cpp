#include "ir/index_expr.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "ir/budget.h"
#include "ir/hash.h"
#include "ir/per_thread.h"

namespace fusec {
namespace {

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_add_overflow(a, b, &r)) throw std::overflow_error("index expression overflows 63 bits");
  return r;
}

std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) throw std::overflow_error("index expression overflows 63 bits");
  return r;
}

std::int64_t floor_div_value(std::int64_t a, std::int64_t b) {
  if (b == 0) throw std::domain_error("division by zero in an index expression");
  if (b == -1) return checked_mul(a, -1);
  const std::int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

std::uint64_t bit_of(Variable v) {
  return std::uint64_t{1} << ((v.id * 3 + static_cast<std::uint32_t>(v.kind)) % 64);
}

std::strong_ordering compare(const IndexAtom& a, const IndexAtom& b) {
  if (&a == &b) return std::strong_ordering::equal;
  if (a.kind != b.kind) return a.kind <=> b.kind;
  if (a.kind == IndexAtom::Kind::kVariable) return a.variable <=> b.variable;
  if (auto c = a.a <=> b.a; c != 0) return c;
  return a.b <=> b.b;
}

std::strong_ordering compare_factors(const IndexFactors& a, const IndexFactors& b) {
  if (a.shares(b)) return std::strong_ordering::equal;
  const std::size_t common = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < common; ++i)
    if (auto c = compare(*a[i], *b[i]); c != 0) return c;
  return b.size() <=> a.size();  // higher degree first
}

}  // namespace

IndexExpr from_terms(IndexTerms terms, std::int64_t constant) {
  count_step();
  IndexExpr e(constant);
  if (!terms.empty()) e.terms_ = std::move(terms);
  return e;
}

IndexExpr make_atom_expr(IndexAtom atom) {
  atom.hash = static_cast<std::size_t>(atom.kind);
  if (atom.kind == IndexAtom::Kind::kVariable) {
    atom.hash = hash_mix(atom.hash, (static_cast<std::size_t>(atom.variable.kind) << 32) | atom.variable.id);
    atom.variables = bit_of(atom.variable);
  } else {
    atom.hash = hash_mix(hash_mix(atom.hash, atom.a.hash()), atom.b.hash());
    for (const IndexExpr* side : {&atom.a, &atom.b})
      for (const IndexTerm& term : side->terms())
        for (const IndexAtomPtr& factor : term.factors) {
          atom.variables |= factor->variables;
          atom.depth = std::max(atom.depth, factor->depth);
        }
    ++atom.depth;
  }
  IndexFactors factors(1);
  factors.push_back(std::allocate_shared<const IndexAtom>(PooledAllocator<const IndexAtom>(), std::move(atom)));
  IndexTerms terms(1);
  terms.push_back({1, std::move(factors)});
  return from_terms(std::move(terms), 0);
}

// Each thread makes a variable once: expressions then share its atom, and comparing them ends at the same address.
IndexExpr IndexExpr::variable(Variable v) {
  using Made = std::array<std::vector<IndexExpr>, 3>;  // by kind and id, which are dense
  std::vector<IndexExpr>& of_kind = PerThread<Made>::get()[static_cast<std::size_t>(v.kind)];
  if (v.id >= of_kind.size()) of_kind.resize(std::size_t{v.id} + 1);
  IndexExpr& known = of_kind[v.id];
  if (known.is_constant())
    known = make_atom_expr({.kind = IndexAtom::Kind::kVariable, .variable = v, .a = {}, .b = {}});
  return known;
}

std::optional<std::int64_t> IndexExpr::as_constant() const {
  if (!is_constant()) return std::nullopt;
  return constant_;
}

std::optional<Variable> IndexExpr::as_variable() const {
  if (constant_ != 0 || terms_.size() != 1) return std::nullopt;
  const IndexTerm& term = terms_[0];
  if (term.coefficient != 1 || term.factors.size() != 1) return std::nullopt;
  if (term.factors[0]->kind != IndexAtom::Kind::kVariable) return std::nullopt;
  return term.factors[0]->variable;
}

IndexExpr IndexExpr::sum(const IndexExpr& a, const IndexExpr& b, std::int64_t sign) {
  const std::int64_t constant = checked_add(a.constant_, checked_mul(b.constant_, sign));
  if (b.is_constant() || (a.is_constant() && sign == 1)) {
    IndexExpr r(constant);
    r.terms_ = b.is_constant() ? a.terms_ : b.terms_;
    return r;
  }
  IndexTerms sum(a.terms_.size() + b.terms_.size());
  const IndexTerm *x = a.terms_.begin(), *y = b.terms_.begin();
  while (x != a.terms_.end() || y != b.terms_.end()) {
    const auto order = y == b.terms_.end()   ? std::strong_ordering::less
                       : x == a.terms_.end() ? std::strong_ordering::greater
                                             : compare_factors(x->factors, y->factors);
    if (order < 0) {
      sum.push_back(*x++);
      continue;
    }
    std::int64_t coefficient = checked_mul(y->coefficient, sign);
    if (order == 0) coefficient = checked_add((x++)->coefficient, coefficient);
    if (coefficient != 0) sum.push_back({coefficient, y->factors});
    ++y;
  }
  return from_terms(std::move(sum), constant);
}

IndexExpr operator*(const IndexExpr& a, const IndexExpr& b) {
  if (a.is(0) || b.is(0)) return 0;
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  IndexExpr product(checked_mul(a.constant_, b.constant_));
  auto scaled = [](const IndexExpr& e, std::int64_t factor) {
    if (factor == 0 || e.is_constant()) return IndexExpr(0);
    IndexTerms terms(e.terms_.size());
    for (const IndexTerm& term : e.terms_) terms.push_back({checked_mul(term.coefficient, factor), term.factors});
    return from_terms(std::move(terms), 0);
  };
  product += scaled(a, b.constant_);
  product += scaled(b, a.constant_);
  for (const IndexTerm& x : a.terms_)
    for (const IndexTerm& y : b.terms_) {
      IndexFactors factors(x.factors.size() + y.factors.size());
      std::ranges::merge(x.factors, y.factors, std::back_inserter(factors),
                         [](const IndexAtomPtr& p, const IndexAtomPtr& q) { return compare(*p, *q) < 0; });
      product += from_terms({{checked_mul(x.coefficient, y.coefficient), std::move(factors)}}, 0);
    }
  return product;
}

std::strong_ordering operator<=>(const IndexExpr& a, const IndexExpr& b) {
  if (!a.terms_.shares(b.terms_)) {
    const auto x = a.terms();
    const auto y = b.terms();
    const std::size_t common = std::min(x.size(), y.size());
    for (std::size_t i = 0; i < common; ++i) {
      if (auto c = compare_factors(x[i].factors, y[i].factors); c != 0) return c;
      if (auto c = x[i].coefficient <=> y[i].coefficient; c != 0) return c;
    }
    if (x.size() != y.size()) return x.size() <=> y.size();
  }
  return a.constant_ <=> b.constant_;
}

std::size_t IndexExpr::hash() const {
  std::size_t h = std::hash<std::int64_t>{}(constant_);
  for (const IndexTerm& term : terms()) {
    h = hash_mix(h, std::hash<std::int64_t>{}(term.coefficient));
    for (const IndexAtomPtr& factor : term.factors) h = hash_mix(h, factor->hash);
  }
  return h;
}

IndexExpr floor_div(const IndexExpr& a, const IndexExpr& b) {
  if (b.is(0)) throw std::domain_error("division by zero in an index expression");
  if (b.is(1)) return a;
  if (a.is(0)) return 0;
  if (a == b) return 1;
  if (a.is_constant() && b.is_constant()) return floor_div_value(a.constant_term(), b.constant_term());
  if (auto divisor = b.as_constant(); divisor && *divisor > 1) {
    // Take out the terms that the divisor divides: (16*i + j) // 16 = i + j // 16.
    IndexTerms whole(a.terms().size()), rest(a.terms().size());
    for (const IndexTerm& term : a.terms())
      if (term.coefficient % *divisor == 0)
        whole.push_back({term.coefficient / *divisor, term.factors});
      else
        rest.push_back(term);
    const std::int64_t whole_constant = floor_div_value(a.constant_term(), *divisor);
    if (!whole.empty() || whole_constant != 0) {
      const IndexExpr remaining = from_terms(std::move(rest), a.constant_term() - whole_constant * *divisor);
      return from_terms(std::move(whole), whole_constant) + floor_div(remaining, b);
    }
    // (x // c) // d = x // (c * d)
    if (a.constant_term() == 0 && a.terms().size() == 1 && a.terms()[0].coefficient == 1 &&
        a.terms()[0].factors.size() == 1) {
      const IndexAtom& atom = *a.terms()[0].factors[0];
      if (atom.kind == IndexAtom::Kind::kFloorDiv && atom.b.is_constant() && atom.b.constant_term() > 0)
        return floor_div(atom.a, atom.b * b);
    }
  } else if (!b.is_constant() && b.constant_term() == 0 && b.terms().size() == 1 && b.terms()[0].coefficient == 1) {
    // The divisor is a product of atoms: take out the terms that contain all of them.
    const IndexFactors& product = b.terms()[0].factors;
    IndexExpr quotient = 0;
    IndexTerms rest(a.terms().size());
    for (const IndexTerm& term : a.terms()) {
      std::vector<IndexAtomPtr> left(term.factors.begin(), term.factors.end());
      bool divides = true;
      for (const IndexAtomPtr& factor : product) {
        auto it =
            std::find_if(left.begin(), left.end(), [&](const IndexAtomPtr& p) { return compare(*p, *factor) == 0; });
        if (it == left.end()) {
          divides = false;
          break;
        }
        left.erase(it);
      }
      if (divides)
        quotient +=
            left.empty() ? IndexExpr(term.coefficient) : from_terms({{term.coefficient, IndexFactors(left)}}, 0);
      else
        rest.push_back(term);
    }
    if (rest.size() < a.terms().size()) return quotient + floor_div(from_terms(std::move(rest), a.constant_term()), b);
  }
  return make_atom_expr({.kind = IndexAtom::Kind::kFloorDiv, .a = a, .b = b});
}

namespace {

// x if the term is c * (x % m) and b divides c * m; else null.
const IndexExpr* dividend_of_remainder(const IndexTerm& term, const IndexExpr& b) {
  if (term.factors.size() != 1 || term.factors[0]->kind != IndexAtom::Kind::kMod) return nullptr;
  const IndexAtom& atom = *term.factors[0];
  if (atom.b == b) return &atom.a;
  const auto inner = atom.b.as_constant(), outer = b.as_constant();
  if (!inner || !outer || *outer < 1) return nullptr;
  return *inner % (*outer / std::gcd(*outer, term.coefficient)) == 0 ? &atom.a : nullptr;
}

// Replaces x % m by x in terms in which this changes the sum by a multiple of b only; the remainder by b stays:
// ((x % 6) * 2 + r) % 4 = (x * 2 + r) % 4.
IndexExpr without_remainders(const IndexExpr& a, const IndexExpr& b) {
  IndexTerms kept(a.terms().size());
  IndexExpr changed = 0;
  try {
    for (const IndexTerm& term : a.terms())
      if (const IndexExpr* dividend = dividend_of_remainder(term, b))
        changed += *dividend * (b.is_constant() ? term.coefficient % b.constant_term() : term.coefficient);
      else
        kept.push_back(term);
    if (kept.size() == a.terms().size()) return a;
    return from_terms(std::move(kept), a.constant_term()) + changed;
  } catch (const std::overflow_error&) {
    return a;
  }
}

}  // namespace

IndexExpr floor_mod(const IndexExpr& a, const IndexExpr& b) {
  if (b.is(0)) throw std::domain_error("division by zero in an index expression");
  if (const IndexExpr flat = without_remainders(a, b); flat != a) return floor_mod(flat, b);
  if (b.is(1) || a.is(0) || a == b) return 0;
  if (a.is_constant() && b.is_constant())
    return a.constant_term() - floor_div_value(a.constant_term(), b.constant_term()) * b.constant_term();
  // Terms of the quotient whose product with b occurs in a have no remainder. The other terms of the quotient come from
  // the division of the rest.
  const IndexExpr quotient = floor_div(a, b);
  IndexExpr whole(quotient.constant_term());
  IndexTerms polynomial(quotient.terms().size());
  for (const IndexTerm& term : quotient.terms()) {
    const IndexExpr product = from_terms({term}, 0) * b;
    const bool stands_in_a = std::all_of(product.terms().begin(), product.terms().end(), [&](const IndexTerm& p) {
      const auto t = std::lower_bound(
          a.terms().begin(), a.terms().end(), p,
          [](const IndexTerm& x, const IndexTerm& y) { return compare_factors(x.factors, y.factors) < 0; });
      return t != a.terms().end() && t->coefficient == p.coefficient && compare_factors(t->factors, p.factors) == 0;
    });
    if (stands_in_a) polynomial.push_back(term);
  }
  whole += from_terms(std::move(polynomial), 0);
  const IndexExpr rest = a - whole * b;
  if (rest != a && !(whole.is(0))) return floor_mod(rest, b);
  return make_atom_expr({.kind = IndexAtom::Kind::kMod, .a = a, .b = b});
}

IndexExpr ceil_div(const IndexExpr& a, const IndexExpr& b) {
  return floor_div(a + b - 1, b);
}

IndexExpr min(const IndexExpr& a, const IndexExpr& b) {
  const IndexExpr difference = a - b;
  if (difference.is_constant()) return difference.constant_term() <= 0 ? a : b;
  return a < b ? make_atom_expr({.kind = IndexAtom::Kind::kMin, .a = a, .b = b})
               : make_atom_expr({.kind = IndexAtom::Kind::kMin, .a = b, .b = a});
}

IndexExpr max(const IndexExpr& a, const IndexExpr& b) {
  const IndexExpr difference = a - b;
  if (difference.is_constant()) return difference.constant_term() >= 0 ? a : b;
  return a < b ? make_atom_expr({.kind = IndexAtom::Kind::kMax, .a = a, .b = b})
               : make_atom_expr({.kind = IndexAtom::Kind::kMax, .a = b, .b = a});
}

std::int64_t evaluate(const IndexExpr& e, const std::function<std::int64_t(Variable)>& value_of) {
  std::int64_t sum = e.constant_term();
  for (const IndexTerm& term : e.terms()) {
    std::int64_t product = term.coefficient;
    for (const IndexAtomPtr& factor : term.factors) {
      std::int64_t v = 0;
      if (factor->kind == IndexAtom::Kind::kVariable) {
        v = value_of(factor->variable);
      } else {
        const std::int64_t a = evaluate(factor->a, value_of), b = evaluate(factor->b, value_of);
        switch (factor->kind) {
          case IndexAtom::Kind::kFloorDiv:
            v = floor_div_value(a, b);
            break;
          case IndexAtom::Kind::kMod:
            v = a - floor_div_value(a, b) * b;
            break;
          case IndexAtom::Kind::kMin:
            v = std::min(a, b);
            break;
          case IndexAtom::Kind::kMax:
            v = std::max(a, b);
            break;
          case IndexAtom::Kind::kVariable:
            break;
        }
      }
      product = checked_mul(product, v);
    }
    sum = checked_add(sum, product);
  }
  return sum;
}

IndexExpr IndexRewriter::operator()(const IndexExpr& e) {
  if (e.is_constant()) return e;
  const std::span<const IndexTerm> terms = e.terms();
  if (terms.size() == 1 && e.constant_term() == 0 && terms[0].coefficient == 1 && terms[0].factors.size() == 1)
    return replaced(terms[0].factors[0]).value_or(e);
  const auto variable = [](const IndexAtomPtr& factor) { return IndexExpr::variable(factor->variable); };
  IndexTerms kept;  // adding them one by one would take quadratic time
  IndexExpr changed = 0;
  bool any_changes = false;  // nothing is copied before the first change
  for (std::size_t at = 0; at < terms.size(); ++at) {
    const IndexTerm& term = terms[at];
    std::optional<IndexExpr> product;  // once a factor changes
    for (std::size_t i = 0; i < term.factors.size(); ++i) {
      std::optional<IndexExpr> factor = replaced(term.factors[i]);
      if (!product && factor) {
        product = term.coefficient;
        for (std::size_t before = 0; before < i; ++before) *product *= variable(term.factors[before]);
      }
      if (product) *product *= factor ? *factor : variable(term.factors[i]);
    }
    if (product && !any_changes) {
      kept = IndexTerms(terms.size());
      for (const IndexTerm& same : terms.first(at)) kept.push_back(same);
      any_changes = true;
    }
    if (product)
      changed += *product;
    else if (any_changes)
      kept.push_back(term);
  }
  if (!any_changes) return e;
  return from_terms(std::move(kept), e.constant_term()) + changed;
}

std::optional<IndexExpr> IndexRewriter::replaced(const IndexAtomPtr& atom) {
  if (atom->kind != IndexAtom::Kind::kVariable) return rebuilt(atom);
  return replacement_ ? replacement_(atom->variable) : std::nullopt;
}

IndexExpr IndexRewriter::rebuilt(const IndexAtomPtr& atom) {
  const bool shallow = atom->depth < 2;
  if (!shallow)
    if (const auto known = done_.find(atom); known != done_.end()) return known->second;
  IndexExpr result = combine_(atom->kind, (*this)(atom->a), (*this)(atom->b));
  if (!shallow) done_.emplace(atom, result);
  return result;
}

namespace {

// Appends the variables of all atoms that are not in `seen`; a variable may occur several times.
void collect(const IndexExpr& e, std::vector<Variable>& found, std::unordered_set<const IndexAtom*>& seen) {
  count_step();
  for (const IndexTerm& term : e.terms())
    for (const IndexAtomPtr& factor : term.factors) {
      if (factor->kind == IndexAtom::Kind::kVariable) {
        found.push_back(factor->variable);
      } else if (factor->depth < 2 || seen.insert(factor.get()).second) {
        collect(factor->a, found, seen);
        collect(factor->b, found, seen);
      }
    }
}

}  // namespace

IndexExpr combine(IndexAtom::Kind kind, const IndexExpr& a, const IndexExpr& b) {
  switch (kind) {
    case IndexAtom::Kind::kFloorDiv:
      return floor_div(a, b);
    case IndexAtom::Kind::kMod:
      return floor_mod(a, b);
    case IndexAtom::Kind::kMin:
      return min(a, b);
    case IndexAtom::Kind::kMax:
      return max(a, b);
    case IndexAtom::Kind::kVariable:
      break;
  }
  throw std::logic_error("a variable has no operands");
}

IndexExpr substitute(const IndexExpr& e, const std::function<std::optional<IndexExpr>(Variable)>& replacement) {
  return IndexRewriter(replacement, combine)(e);
}

IndexExpr with_axis(const IndexExpr& e, std::uint32_t axis, const IndexExpr& value) {
  return substitute(e, [&](Variable v) {
    return v == Variable{Variable::Kind::kAxis, axis} ? std::optional(value) : std::nullopt;
  });
}

IndexExpr rewrite_atoms(const IndexExpr& e, const std::function<IndexExpr(IndexAtom::Kind, IndexExpr, IndexExpr)>& f) {
  return IndexRewriter(nullptr, f)(e);
}

std::vector<Variable> variables_of(const IndexExpr& e) {
  std::vector<Variable> found;
  if (e.is_constant()) return found;
  found.reserve(2 * e.terms().size());
  std::unordered_set<const IndexAtom*> seen;
  collect(e, found, seen);
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

bool mentions(const IndexExpr& e, Variable v) {
  for (const IndexTerm& term : e.terms())
    for (const IndexAtomPtr& factor : term.factors) {
      if (!(factor->variables & bit_of(v))) continue;
      if (factor->kind == IndexAtom::Kind::kVariable ? factor->variable == v
                                                     : mentions(factor->a, v) || mentions(factor->b, v))
        return true;
    }
  return false;
}

bool mentions_any(const IndexExpr& e, const std::vector<std::uint32_t>& axes) {
  return std::ranges::any_of(axes, [&](std::uint32_t a) { return mentions(e, axis_variable(a)); });
}

std::optional<std::int64_t> coefficient_of(const IndexExpr& e, Variable v) {
  std::int64_t coefficient = 0;
  for (const IndexTerm& term : e.terms()) {
    if (term.factors.size() == 1 && term.factors[0]->kind == IndexAtom::Kind::kVariable) {
      if (term.factors[0]->variable == v) coefficient += term.coefficient;
      continue;
    }
    for (const IndexAtomPtr& factor : term.factors) {
      const bool here = factor->kind == IndexAtom::Kind::kVariable ? factor->variable == v
                                                                   : mentions(factor->a, v) || mentions(factor->b, v);
      if (here) return std::nullopt;
    }
  }
  return coefficient;
}

std::optional<IndexExpr> element_count(std::span<const Dim> shape) {
  for (const Dim& dim : shape)
    if (dim.is(0)) return IndexExpr(0);
  try {
    IndexExpr product = 1;
    for (const Dim& dim : shape) product *= dim;
    return product;
  } catch (const std::overflow_error&) {
    return std::nullopt;
  }
}

}  // namespace fusec
