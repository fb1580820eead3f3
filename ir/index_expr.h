// Integer expressions over symbols, loop axes and loaded indices, kept in one canonical form: a polynomial whose atoms
// are variables, floor-divisions, remainders, minima and maxima. Both dimensions of tensors ("2*tokens+1") and index
// arithmetic of kernels ("(16*i + j) // 16") use this type.
//
// Two expressions compare equal if and only if their canonical forms are equal; order and hash depend on content alone.
// Simplification that needs ranges ((16*i + j) // 16 is i for 0 <= j < 16) is in ir/bounds.h.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/pooled_allocator.h"

namespace fusec {

// A variable of an expression.
struct Variable {
  enum class Kind : std::uint8_t {
    kSymbol,  // a symbolic dimension; id indexes Graph::symbols
    kAxis,    // a loop axis; id indexes ExprPool's axes
    kValue,   // an integer loaded from a tensor; id is an ExprId of the same pool
  };
  Kind kind;
  std::uint32_t id;
  auto operator<=>(const Variable&) const = default;
};

inline Variable axis_variable(std::uint32_t axis) {
  return {Variable::Kind::kAxis, axis};
}

class IndexExpr;

struct IndexAtom;
using IndexAtomPtr = std::shared_ptr<const IndexAtom>;

// A list in one block, which copies share. It is filled once, up to the capacity that it was made with.
template <typename T>
class SharedList {
 public:
  using value_type = T;
  SharedList() = default;
  explicit SharedList(std::size_t capacity) {
    if (capacity > 0) items_ = std::allocate_shared<T[]>(PooledAllocator<T>(), capacity);
  }
  explicit SharedList(std::span<const T> items) : SharedList(items.size()) {
    for (const T& item : items) push_back(item);
  }
  SharedList(std::initializer_list<T> items) : SharedList(std::span<const T>(items.begin(), items.size())) {}

  void push_back(T item) { items_[size_++] = std::move(item); }

  const T* begin() const { return items_.get(); }
  const T* end() const { return begin() + size_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](std::size_t i) const { return items_[i]; }
  bool shares(const SharedList& other) const { return items_ == other.items_; }

 private:
  std::shared_ptr<T[]> items_;
  std::size_t size_ = 0;
};

// coefficient * product of factors. The factors are sorted; a power is a repeated factor.
using IndexFactors = SharedList<IndexAtomPtr>;
struct IndexTerm {
  std::int64_t coefficient = 0;
  IndexFactors factors;
};
using IndexTerms = SharedList<IndexTerm>;

class IndexExpr {
 public:
  IndexExpr() = default;
  IndexExpr(std::int64_t value) : constant_(value) {}  // NOLINT(google-explicit-constructor): numbers are expressions
  IndexExpr(int value) : constant_(value) {}           // NOLINT(google-explicit-constructor)

  static IndexExpr variable(Variable v);
  static IndexExpr symbol(std::uint32_t id) { return variable({Variable::Kind::kSymbol, id}); }
  static IndexExpr axis(std::uint32_t id) { return variable({Variable::Kind::kAxis, id}); }
  static IndexExpr value(std::uint32_t expr_id) { return variable({Variable::Kind::kValue, expr_id}); }

  bool is_constant() const { return terms_.empty(); }
  std::optional<std::int64_t> as_constant() const;
  bool is(std::int64_t value) const { return is_constant() && constant_ == value; }
  std::optional<Variable> as_variable() const;  // exactly 1 * variable + 0

  std::int64_t constant_term() const { return constant_; }
  std::span<const IndexTerm> terms() const { return {terms_.begin(), terms_.size()}; }

  // Overflow of 63 bits throws std::overflow_error.
  friend IndexExpr operator+(const IndexExpr& a, const IndexExpr& b) { return sum(a, b, 1); }
  friend IndexExpr operator-(const IndexExpr& a, const IndexExpr& b) { return sum(a, b, -1); }
  friend IndexExpr operator*(const IndexExpr& a, const IndexExpr& b);
  IndexExpr operator-() const { return IndexExpr(0) - *this; }
  IndexExpr& operator+=(const IndexExpr& b) { return *this = *this + b; }
  IndexExpr& operator*=(const IndexExpr& b) { return *this = *this * b; }

  friend bool operator==(const IndexExpr& a, const IndexExpr& b) { return (a <=> b) == 0; }
  friend std::strong_ordering operator<=>(const IndexExpr& a, const IndexExpr& b);
  std::size_t hash() const;

 private:
  friend IndexExpr from_terms(IndexTerms terms, std::int64_t constant);
  static IndexExpr sum(const IndexExpr& a, const IndexExpr& b, std::int64_t sign);  // a + sign * b

  std::int64_t constant_ = 0;
  IndexTerms terms_;  // sorted
};

using Dim = IndexExpr;
using Shape = std::vector<Dim>;

// The sum of these terms and the constant. The terms must be sorted and have nonzero coefficients.
IndexExpr from_terms(IndexTerms terms, std::int64_t constant);

// Atoms are shared: x // 6 + x % 6 holds all atoms of x twice. Walks must visit each atom once; written out, chains of
// reshape and permute grow exponentially.
struct IndexAtom {
  enum class Kind : std::uint8_t { kVariable, kFloorDiv, kMod, kMin, kMax };
  Kind kind;
  Variable variable{};  // kVariable
  IndexExpr a, b;       // operands of all other kinds
  // Derived from the fields above; make_atom_expr fills them in.
  std::size_t hash = 0;
  std::uint64_t variables = 0;  // a Bloom filter of the variables inside: an absent bit means an absent variable
  std::uint32_t depth = 0;      // 0 for a variable, else 1 + the greatest depth of an atom inside
};

// Floor division and the remainder with the divisor's sign, as in Python. Exact cases fold; a constant divisor of 0
// throws std::domain_error.
IndexExpr floor_div(const IndexExpr& a, const IndexExpr& b);
IndexExpr floor_mod(const IndexExpr& a, const IndexExpr& b);
IndexExpr ceil_div(const IndexExpr& a, const IndexExpr& b);
IndexExpr min(const IndexExpr& a, const IndexExpr& b);
IndexExpr max(const IndexExpr& a, const IndexExpr& b);

// Value under an assignment of the variables. Overflow throws std::overflow_error, division by zero std::domain_error.
std::int64_t evaluate(const IndexExpr& e, const std::function<std::int64_t(Variable)>& value_of);

// Replaces every variable for which `replacement` returns an expression.
IndexExpr substitute(const IndexExpr& e, const std::function<std::optional<IndexExpr>(Variable)>& replacement);

// Replaces one axis.
IndexExpr with_axis(const IndexExpr& e, std::uint32_t axis, const IndexExpr& value);

// Rebuilds the expression, passing every floor-division, remainder, minimum and maximum through `f`, innermost first.
IndexExpr rewrite_atoms(const IndexExpr& e, const std::function<IndexExpr(IndexAtom::Kind, IndexExpr, IndexExpr)>& f);

// substitute and rewrite_atoms for one expression after another: an atom that several of them share is rebuilt once.
// The functions must give the same result whenever they are called.
class IndexRewriter {
 public:
  using Replacement = std::function<std::optional<IndexExpr>(Variable)>;
  using Combine = std::function<IndexExpr(IndexAtom::Kind, IndexExpr, IndexExpr)>;

  // Without a `replacement` every variable stays.
  IndexRewriter(Replacement replacement, Combine combine)
      : replacement_(std::move(replacement)), combine_(std::move(combine)) {}
  IndexExpr operator()(const IndexExpr& e);

 private:
  std::optional<IndexExpr> replaced(const IndexAtomPtr& atom);  // nothing for a variable that stays
  IndexExpr rebuilt(const IndexAtomPtr& atom);

  Replacement replacement_;
  Combine combine_;
  std::unordered_map<IndexAtomPtr, IndexExpr> done_;  // keeps the atoms alive, so their addresses stay unique
};

// The floor-division, remainder, minimum or maximum of a and b.
IndexExpr combine(IndexAtom::Kind kind, const IndexExpr& a, const IndexExpr& b);

// The variables of the expression, sorted, each once.
std::vector<Variable> variables_of(const IndexExpr& e);
bool mentions(const IndexExpr& e, Variable v);
bool mentions_any(const IndexExpr& e, const std::vector<std::uint32_t>& axes);

// The constant c if e = c * v + rest, with v not in rest (0 if v does not occur). Otherwise nothing.
std::optional<std::int64_t> coefficient_of(const IndexExpr& e, Variable v);

// "2*tokens+1", "tokens//2", "min(a, b)": the syntax of dimension strings; `name_of` names variables.
std::string to_string(const IndexExpr& e, const std::function<std::string(Variable)>& name_of);

// Product of all dimensions; nothing if the constants alone overflow 63 bits.
std::optional<IndexExpr> element_count(std::span<const Dim> shape);

}  // namespace fusec

template <>
struct std::hash<fusec::IndexExpr> {
  std::size_t operator()(const fusec::IndexExpr& e) const { return e.hash(); }
};
