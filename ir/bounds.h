// Bounds of the variables of index expressions, and what follows from them: ranges, proofs, simplification.
//
// Callers use this to drop a guard, to show that two dimensions agree, that two reshapes cancel, or that an access is
// contiguous. tests/ir/bounds_test.cpp checks every rule exhaustively on small bounds.
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
  std::int64_t hint = 2048;  // value for costs and reports; always within the bounds

  bool operator==(const Symbol&) const = default;
};

// An upper bound of a product of symbols, tighter than their own bounds: batch * tokens <= max.
struct ProductLimit {
  std::vector<std::uint32_t> symbols;  // sorted; a repeated symbol is a power
  std::int64_t max;

  bool operator==(const ProductLimit&) const = default;
};

// The symbols of a model by id. Copies share one list, since every ExprPool holds a copy and a model can have as many
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
  std::shared_ptr<std::vector<Symbol>> list_;  // null when empty; copied before a change if it is shared
};

struct Bounds {
  Symbols symbols;                   // by symbol id
  std::vector<IndexExpr> axes;       // extent by axis id: 0 <= axis < extent
  std::vector<IndexExpr> value_max;  // by ExprId, grown on demand: 0 <= value < extent (loaded indices are clamped)
  std::vector<ProductLimit> products;
};

// Least and greatest value, saturated at the limits of int64.
struct Range {
  std::int64_t min;
  std::int64_t max;
};

Range range_of(const IndexExpr& e, const Bounds& bounds);

// Proofs. True: proven for all values within the bounds. False: not proven, the statement may still hold.
bool proves_nonnegative(const IndexExpr& e, const Bounds& bounds);
inline bool proves_less(const IndexExpr& a, const IndexExpr& b, const Bounds& bounds) {
  return proves_nonnegative(b - a - 1, bounds);
}
// a and b differ for all values within the bounds.
bool proves_different(const IndexExpr& a, const IndexExpr& b, const Bounds& bounds);
// e is a multiple of k for all values within the bounds.
bool proves_multiple_of(const IndexExpr& e, std::int64_t k, const Bounds& bounds);

// The simplest equal expression that the rules find. Divisions and remainders disappear when the dividend is in range,
// decided minima and maxima become one operand, and (a//c)*c + a%c becomes a.
IndexExpr simplify(const IndexExpr& e, const Bounds& bounds);

struct SimplificationMemory;  // what is known about parts of expressions

// simplify for one expression after another under the same bounds: what it found about parts that they share it finds
// once. In between, axes and loaded values may be added to the bounds; after any other change call forget().
class IndexSimplifier {
 public:
  IndexSimplifier();
  IndexSimplifier(const IndexSimplifier&);  // a copy starts anew
  IndexSimplifier& operator=(const IndexSimplifier&);
  IndexSimplifier(IndexSimplifier&&) noexcept;
  IndexSimplifier& operator=(IndexSimplifier&&) noexcept;
  ~IndexSimplifier();

  IndexExpr operator()(const IndexExpr& e, const Bounds& bounds);
  void forget();

 private:
  std::unique_ptr<SimplificationMemory> known_;  // null before the first use
};

}  // namespace fusec
