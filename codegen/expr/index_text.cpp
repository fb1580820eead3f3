#include "codegen/expr/index_text.h"

#include <limits>

namespace fusec {
namespace {

constexpr std::int64_t kGreatestInt = std::numeric_limits<std::int32_t>::max();

std::string index_literal(std::int64_t v) {
  if (v == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807ll - 1)";
  return std::to_string(v) + (v > kGreatestInt || v < -kGreatestInt ? "ll" : "");
}

}  // namespace

bool fits_int32(const IndexExpr& e, const Bounds& bounds) {
  if (e.constant_term() > kGreatestInt || e.constant_term() < -kGreatestInt) return false;
  std::int64_t sum = std::abs(e.constant_term());
  for (const IndexTerm& term : e.terms()) {
    const Range range = range_of(from_terms({term}, 0), bounds);
    if (range.min < -kGreatestInt || range.max > kGreatestInt) return false;
    sum += std::max(std::abs(range.min), std::abs(range.max));
    // A product is computed step by step: each partial product must fit, even if another factor can be 0.
    if (term.coefficient > kGreatestInt || term.coefficient < -kGreatestInt) return false;
    IndexExpr product(1);
    for (const IndexAtomPtr& factor : term.factors) {
      product *= from_terms({{1, {factor}}}, 0);
      const Range partial = range_of(product, bounds);
      if (partial.min < -kGreatestInt || partial.max > kGreatestInt) return false;
      if (factor->kind != IndexAtom::Kind::kVariable &&
          (!fits_int32(factor->a, bounds) || !fits_int32(factor->b, bounds)))
        return false;
    }
  }
  if (sum <= kGreatestInt) return true;
  // Positive and negative terms are not all at their extremes at once, so both partial sums are checked.
  IndexExpr more = std::max<std::int64_t>(0, e.constant_term()), less = std::max<std::int64_t>(0, -e.constant_term());
  for (const IndexTerm& term : e.terms()) {
    const IndexExpr alone = from_terms({term}, 0);
    const Range range = range_of(alone, bounds);
    if (range.min < 0 && range.max > 0) return false;
    (range.min < 0 ? less : more) += range.min < 0 ? -alone : alone;
  }
  return proves_nonnegative(kGreatestInt - more, bounds) && proves_nonnegative(kGreatestInt - less, bounds);
}

std::string IndexText::atom(const IndexAtom& a) const {
  switch (a.kind) {
    case IndexAtom::Kind::kVariable:
      return variable(a.variable);
    case IndexAtom::Kind::kFloorDiv:
    case IndexAtom::Kind::kMod: {
      const bool divide = a.kind == IndexAtom::Kind::kFloorDiv;
      if (proves_nonnegative(a.a, bounds)) return "(" + tight(a.a) + (divide ? " / " : " % ") + tight(a.b) + ")";
      if (prelude) prelude->insert("floor_index");
      return std::string(divide ? "floor_div_index" : "floor_mod_index") + "<" + type() + ">(" + (*this)(a.a) + ", " +
             (*this)(a.b) + ")";
    }
    case IndexAtom::Kind::kMin:
    case IndexAtom::Kind::kMax:
      return std::string(a.kind == IndexAtom::Kind::kMin ? "min" : "max") + "((" + type() + ")" + tight(a.a) + ", (" +
             type() + ")" + tight(a.b) + ")";
  }
  return {};
}

std::string IndexText::operator()(const IndexExpr& e) const {
  if (e.is_constant()) return index_literal(e.constant_term());
  std::string text;
  for (const IndexTerm& term : e.terms()) {
    // The variable comes before the constant, for readability: "i * 4096".
    std::string product;
    bool nothing = false;  // a factor is 0
    for (const IndexAtomPtr& factor : term.factors) {
      const std::string one = atom(*factor);
      nothing = nothing || one == "0";
      product += (product.empty() ? "" : " * ") + one;
    }
    if (nothing) continue;
    std::int64_t coefficient = term.coefficient;
    if (coefficient < 0 && coefficient != std::numeric_limits<std::int64_t>::min()) {
      text += text.empty() ? "-" : " - ";
      coefficient = -coefficient;
    } else if (!text.empty()) {
      text += " + ";
    }
    if (coefficient != 1) product += " * " + index_literal(coefficient);
    text += product;
  }
  if (text.empty()) return index_literal(e.constant_term());
  if (e.constant_term() > 0) text += " + " + index_literal(e.constant_term());
  if (e.constant_term() < 0) text += " - " + index_literal(-e.constant_term());
  return text;
}

std::string IndexText::tight(const IndexExpr& e) const {
  const std::string text = (*this)(e);
  const bool name_or_number = text.find_first_of(" -") == std::string::npos;
  const bool one_atom = e.constant_term() == 0 && e.terms().size() == 1 && e.terms()[0].coefficient == 1 &&
                        e.terms()[0].factors.size() == 1;
  return name_or_number || one_atom ? text : "(" + text + ")";
}

}  // namespace fusec
