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
