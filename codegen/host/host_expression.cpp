#include "codegen/host/host_expression.h"

namespace fusec {
namespace {

std::string host_literal(std::int64_t v) {
  if (v == INT64_MIN) return "(-9223372036854775807LL - 1)";
  return std::to_string(v) + (v > INT32_MAX || v < INT32_MIN ? "LL" : "");
}

std::string factor_text(const IndexAtom& atom, const std::function<std::string(Variable)>& name_of) {
  const char* function = "";
  switch (atom.kind) {
    case IndexAtom::Kind::kVariable:
      return name_of(atom.variable);
    case IndexAtom::Kind::kFloorDiv:
      function = "floor_div";
      break;
    case IndexAtom::Kind::kMod:
      function = "floor_mod";
      break;
    case IndexAtom::Kind::kMin:
      function = "least";
      break;
    case IndexAtom::Kind::kMax:
      function = "greatest";
      break;
  }
  return std::string(function) + "(" + host_expression(atom.a, name_of) + ", " + host_expression(atom.b, name_of) + ")";
}

}  // namespace

std::string host_expression(const IndexExpr& e, const std::function<std::string(Variable)>& name_of) {
  std::string text;
  for (const IndexTerm& term : e.terms()) {
    const bool negative = term.coefficient < 0;
    if (!text.empty())
      text += negative ? " - " : " + ";
    else if (negative)
      text += "-";
    bool first = true;
    if (term.coefficient != 1 && term.coefficient != -1) {
      const std::string digits = host_literal(term.coefficient);
      text += negative ? digits.substr(1) : digits;
      first = false;
    }
    for (const IndexAtomPtr& factor : term.factors) {
      text += (first ? "" : " * ") + factor_text(*factor, name_of);
      first = false;
    }
  }
  const std::int64_t constant = e.constant_term();
  if (text.empty()) return host_literal(constant);
  if (constant > 0) text += " + " + host_literal(constant);
  if (constant < 0) text += " - " + host_literal(constant).substr(1);
  return text;
}

}  // namespace fusec
