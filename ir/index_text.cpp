// Index expressions as text: "4*i+j//2".
#include "ir/index_expr.h"

namespace fusec {
namespace {

std::string atom_text(const IndexAtom& atom, const std::function<std::string(Variable)>& name_of) {
  if (atom.kind == IndexAtom::Kind::kVariable) return name_of(atom.variable);
  auto side = [&](const IndexExpr& e) {
    std::string text = to_string(e, name_of);
    return e.is_constant() || e.as_variable() ? text : "(" + text + ")";
  };
  switch (atom.kind) {
    case IndexAtom::Kind::kFloorDiv:
      return "(" + side(atom.a) + "//" + side(atom.b) + ")";
    case IndexAtom::Kind::kMod:
      return "(" + side(atom.a) + "%" + side(atom.b) + ")";
    case IndexAtom::Kind::kMin:
      return "min(" + to_string(atom.a, name_of) + ", " + to_string(atom.b, name_of) + ")";
    case IndexAtom::Kind::kMax:
      return "max(" + to_string(atom.a, name_of) + ", " + to_string(atom.b, name_of) + ")";
    case IndexAtom::Kind::kVariable:
      break;
  }
  return {};
}

}  // namespace

std::string to_string(const IndexExpr& e, const std::function<std::string(Variable)>& name_of) {
  std::string text;
  for (const IndexTerm& term : e.terms()) {
    const std::int64_t c = term.coefficient;
    if (c < 0)
      text += "-";
    else if (!text.empty())
      text += "+";
    bool first = true;
    if (c != 1 && c != -1) {
      const std::string digits = std::to_string(c);
      text += c < 0 ? digits.substr(1) : digits;
      first = false;
    }
    for (const IndexAtomPtr& factor : term.factors) {
      if (!first) text += "*";
      first = false;
      std::string atom = atom_text(*factor, name_of);
      // A division needs no parentheses if it is the whole expression.
      if (e.terms().size() == 1 && e.constant_term() == 0 && c == 1 && term.factors.size() == 1 && atom.front() == '(')
        atom = atom.substr(1, atom.size() - 2);
      text += atom;
    }
  }
  const std::int64_t k = e.constant_term();
  if (text.empty()) return std::to_string(k);
  if (k > 0) text += "+" + std::to_string(k);
  if (k < 0) text += std::to_string(k);
  return text;
}

}  // namespace fusec
