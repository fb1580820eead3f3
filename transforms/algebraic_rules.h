// The table of algebraic rewrite rules. Each rule leaves every bit of the result unchanged:
//
//   "mul(x, 1) -> x"               a number matches a number operand, or a constant whose elements all equal it
//   "maximum(x, x) -> x"           the same letter is the same value; operands of commutative ops match in either order
//   "relu(relu(x)) -> relu(x)"     the replacement is a value that the pattern found, or a new node
//   "view(view(x)) -> reshape(x)"  `view` is any op that only reshapes, `permutation` is permute or transpose
//
// A node that only loads one operand at the result's own index needs no rule, because its formula proves it: identity,
// a cast to the same dtype, a reshape or expand to the same shape, a slice of everything, a concat of one operand.
// tests/transforms/algebraic_rules_test.cpp evaluates both sides of every rule for every dtype that it holds for, on
// zeros of both signs, infinities, NaN, subnormals and extreme values.
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
  kAnyOperands,      // any dtypes of x and y
  kIntegerOperands,  // x and y are integers or bools; the result has another dtype
};

// The nodes and values that a rule's pattern matched.
struct RuleMatch {
  const Graph& graph;
  const Node& outer;
  const TensorType& result;                                      // type of the outer node's result
  std::array<ValueId, 4> variables{kNone, kNone, kNone, kNone};  // values of c, x, y, z
  std::vector<NodeId> inner;                                     // matched nodes below the outer one, in matching order
};

struct AlgebraicRule {
  std::string_view text;
  RuleHolds holds = RuleHolds::kAll;
  // Returns the attributes of the replacement's op, or nothing if the rule does not apply. A rule without this function
  // matches only nodes without attributes.
  std::optional<Attributes> (*attributes)(const RuleMatch&) = nullptr;
};

std::span<const AlgebraicRule> algebraic_rules();

// One term of a parsed rule.
struct RuleTerm {
  enum class Kind : std::uint8_t { kVariable, kNumber, kOp };
  Kind kind;
  std::string name;          // an op, or a class of ops (`view`, `permutation`)
  std::size_t variable = 0;  // index into RuleMatch::variables
  double number = 0;
  std::vector<RuleTerm> operands;
  bool operator==(const RuleTerm& other) const;
};
struct ParsedRule {
  const AlgebraicRule* rule;
  RuleTerm pattern, replacement;
};
// Throws InternalError if the text is not a rule.
ParsedRule parse_rule(const AlgebraicRule& rule);

// Whether a pattern's word (an op or a class of ops) means this op.
bool is_meant(std::string_view word, const OpDef& op);
// The permutation of a permute or transpose node: dimension d of the result is dimension [d] of the operand.
std::vector<std::int64_t> permutation_of(const Graph& graph, const Node& node, std::size_t rank);
bool is_commutative(std::string_view op);

// Whether the matched values have the dtypes that the rule requires.
bool holds(RuleHolds condition, const RuleMatch& match);

}  // namespace fusec
