// Index expressions as C integer arithmetic, and whether 32 bits are enough for them.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "ir/bounds.h"
#include "ir/index_expr.h"

namespace fusec {

// No subterm of e can leave the range of int, whatever the bounds allow.
bool fits_int32(const IndexExpr& e, const Bounds& bounds);

struct IndexText {
  const Bounds& bounds;
  bool wide = false;  // long long instead of int
  std::function<std::string(Variable)>
      variable{};                            // a variable's text, of the index type, binding as tightly as a name
  std::set<std::string>* prelude = nullptr;  // gets the parts that the text calls

  std::string operator()(const IndexExpr& e) const;  // as a summand: "4096 * i + j"
  std::string tight(const IndexExpr& e) const;       // as a factor: "(4096 * i + j)"
  std::string type() const { return wide ? "long long" : "int"; }

 private:
  std::string atom(const IndexAtom& a) const;
};

}  // namespace fusec
