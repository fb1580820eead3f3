// Algebra that changes no bit of a result, as data. A row reads as it is applied:
//
//   "mul(x, 1) -> x"               a number stands for a number operand, or for a constant whose elements all have it
//   "maximum(x, x) -> x"           one letter is one value; operands of commutative ops match in either order
//   "relu(relu(x)) -> relu(x)"     the replacement may be what the pattern found, or a new node
//   "view(view(x)) -> reshape(x)"  `view` is any op that only reshapes, `permutation` permute or transpose
//
// What the formula of a single op proves needs no row: a plain load of an operand at the result's own index (identity,
// cast to the own dtype, reshape or expand to the own shape, a slice of everything, a concat of one) goes without.
// tests/transforms/algebraic_rules_test.cpp evaluates both sides of every row, for every dtype that it holds for, on
// zeros of both signs, infinities, NaN, subnormals and extremes.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace fusec {

// The dtypes for which a rule holds. Except under kAnyOperands, all operands named x and y have the result's dtype.
enum class RuleHolds : std::uint8_t {
  kAll,
  kFloats,
  kIntegers,
  kSigned,  // floats and signed integers
  kBools,
  kAnyOperands,      // whatever x and y are
  kIntegerOperands,  // x and y are integers or bools, the result is something else
};

// What a pattern found in a graph.
struct RuleMatch {
  const Graph& graph;
  const Node& outer;
  const TensorType& result;                                      // of the outer node
  std::array<ValueId, 4> variables{kNone, kNone, kNone, kNone};  // c x y z
  std::vector<NodeId> inner;                                     // the nodes below the outer one, in order of matching
};

struct AlgebraicRule {
  std::string_view text;
  RuleHolds holds = RuleHolds::kAll;
  // The attributes of the replacement's op, or nothing where the rule does not apply. Without it the rule is for nodes
  // without attributes.
  std::optional<Attributes> (*attributes)(const RuleMatch&) = nullptr;
};

std::span<const AlgebraicRule> algebraic_rules();

// A rule's text, read.
struct RuleTerm {
  enum class Kind : std::uint8_t { kVariable, kNumber, kOp };
  Kind kind;
  std::string name;          // of the op, or of a class of ops
  std::size_t variable = 0;  // in RuleMatch::variables
  double number = 0;
  std::vector<RuleTerm> operands;
  bool operator==(const RuleTerm& other) const;
};
struct ParsedRule {
  const AlgebraicRule* rule;
  RuleTerm pattern, replacement;
};
// Throws InternalError where the text is no rule.
ParsedRule parse_rule(const AlgebraicRule& rule);

// Is this op meant by a pattern's word?
bool is_meant(std::string_view word, const OpDef& op);
// Of a permute or transpose: where dimension d of the result comes from.
std::vector<std::int64_t> permutation_of(const Graph& graph, const Node& node, std::size_t rank);
// May the operands of this op change places?
bool is_commutative(std::string_view op);

// Does the rule hold for what the pattern found?
bool holds(RuleHolds condition, const RuleMatch& match);

}  // namespace fusec
