// What is known of the variables of index expressions, and what follows from it: ranges, proofs, simplification.
//
// Used to decide that a guard can go, that two dimensions agree, that reshape after reshape is the identity and that an
// access is contiguous. Every rule is checked exhaustively on small bounds in tests/ir/bounds_test.cpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/index_expr.h"

namespace fusec {

// A symbolic dimension of a model.
struct Symbol {
  std::string name;
  std::int64_t min = 1;
  std::int64_t max = 2147483647;
  std::int64_t multiple_of = 1;
  std::int64_t hint = 2048;  // the value used for costs and reports; always allowed by the bounds

  bool operator==(const Symbol&) const = default;
};

// What is known of a product of symbols beyond their own bounds: batch * tokens <= max.
struct ProductLimit {
  std::vector<std::uint32_t> symbols;  // sorted; one that is repeated is a power
  std::int64_t max;

  bool operator==(const ProductLimit&) const = default;
};

// The symbols of a model by id. Copies share one list: every pool of expressions has one, and there may be as many
// pools as symbols.
class Symbols {
 public:
  Symbols() = default;
  Symbols(std::vector<Symbol> list)  // NOLINT(google-explicit-constructor): a list is symbols
      : list_(std::make_shared<std::vector<Symbol>>(std::move(list))) {}
  Symbols(std::initializer_list<Symbol> list) : Symbols(std::vector<Symbol>(list)) {}

  const std::vector<Symbol>& list() const {
    static const std::vector<Symbol> none;
    return list_ ? *list_ : none;
  }
  const Symbol& operator[](std::size_t id) const { return list()[id]; }
  const Symbol& at(std::size_t id) const { return list().at(id); }
  std::size_t size() const { return list().size(); }
  bool empty() const { return list().empty(); }
  auto begin() const { return list().begin(); }
  auto end() const { return list().end(); }
  void add(Symbol symbol) {
    if (!list_ || list_.use_count() > 1) list_ = std::make_shared<std::vector<Symbol>>(list());
    list_->push_back(std::move(symbol));
  }
  friend bool operator==(const Symbols& a, const Symbols& b) { return a.list_ == b.list_ || a.list() == b.list(); }

 private:
  std::shared_ptr<std::vector<Symbol>> list_;  // null for none; copied before a change where it is shared
};

struct Bounds {
  Symbols symbols;                   // by symbol id
  std::vector<IndexExpr> axes;       // extent by axis id: 0 <= axis < extent
  std::vector<IndexExpr> value_max;  // by ExprId, grown on demand: 0 <= value < extent (loaded indices are clamped)
  std::vector<ProductLimit> products;
};

// Least and greatest value; saturated at the limits of int64 where it may lie beyond.
struct Range {
  std::int64_t min;
  std::int64_t max;
};

Range range_of(const IndexExpr& e, const Bounds& bounds);

// Proofs: true means proven for every value the bounds allow, false means not proven.
bool proves_nonnegative(const IndexExpr& e, const Bounds& bounds);
inline bool proves_less(const IndexExpr& a, const IndexExpr& b, const Bounds& bounds) {
  return proves_nonnegative(b - a - 1, bounds);
}
// a and b can have no common value under the bounds.
bool proves_different(const IndexExpr& a, const IndexExpr& b, const Bounds& bounds);
// Is e a multiple of k, for every value?
bool proves_multiple_of(const IndexExpr& e, std::int64_t k, const Bounds& bounds);

// The simplest equal expression that the rules find: divisions and remainders of what is in range disappear, minima and
// maxima are decided, (a//c)*c + a%c is a again.
IndexExpr simplify(const IndexExpr& e, const Bounds& bounds);

}  // namespace fusec
