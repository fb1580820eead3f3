// Prints index expressions as C integer arithmetic.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "analysis/kernel/index_width.h"
#include "ir/bounds.h"
#include "ir/index_expr.h"

namespace fusec {

struct IndexText {
  const Bounds& bounds;
  bool wide = false;  // long long instead of int
  std::function<std::string(Variable)>
      variable{};                            // text of a variable of the index type; must bind as tightly as a name
  std::set<std::string>* prelude = nullptr;  // receives the names of prelude parts that the text calls

  std::string operator()(const IndexExpr& e) const;  // as a summand: "4096 * i + j"
  std::string tight(const IndexExpr& e) const;       // as a factor, in parentheses: "(4096 * i + j)"
  std::string type() const { return wide ? "long long" : "int"; }

 private:
  std::string atom(const IndexAtom& a) const;
};

}  // namespace fusec
