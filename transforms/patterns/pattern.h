// A fusion pattern is a declaration: what it matches, on which conditions, and what that becomes. Built-in patterns
// (builtin/*.patterns) and a user's own (--patterns=FILE, the library) are read by one parser and tried by one matcher.
//
//   pattern fusec.relu_squared priority 100
//     "the square of a relu, as one group"
//     match   mul(act: relu(x), act)
//     where   dtype(x, float16, bfloat16, float32)
//     becomes group
//
// What a term may be:
//
//   x                      any value; a name that stands twice is one value
//   _                      any value
//   gate: linear(x, w)     a name for what a part matches: the annotated parts of the match
//   mul(a, b)              a node of that op; operands of commutative ops in either order. Further operands must be
//                          absent. `view` is any op that only reshapes, `permutation` permute or transpose,
//                          `transposed` one that exchanges the last two dimensions, `piece` any result of split, chunk,
//                          slice or select
//   softmax(x, dim=d)      an attribute: a literal, alternatives ("none" | absent), or a name that binds it (twice: the
//                          same; dimensions are compared as counted from 0)
//   bias?                  an operand that may be absent
//   cast(x)?               a node that may be absent: cast(x), or else x
//   split(x).1             the second result of a node
//   ~x                     through transparent nodes: views, expands, casts that keep what the value means (of groups
//                          only, where they become part of the match)
//   chain(linear(x, w))    one elementwise node or more, and what they begin with: all nodes on all ways between, whose
//                          other operands may be anything. Their values may be read later elsewhere as well
//   1, 0.5, -inf           a number operand, or a constant whose elements are all that number. Whole numbers are meant
//                          exactly; one with a point to a millionth, or as rounded to the constant's dtype
//   (relu(x) | gelu(x))    alternatives, in order
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/fusion_plan.h"
#include "ir/graph.h"

namespace fusec {

inline constexpr std::uint32_t kNoName = 0xffffffffu;

// One allowed value of an attribute, or (in a replacement) how its value is made.
struct PatternAttribute {
  std::string name;
  std::vector<AttributeValue> allowed;  // literals, as written: text, integers, numbers, flags, lists of integers
  bool may_be_absent = false;
  std::uint32_t bound = kNoName;     // the name that takes its value; in a replacement: that gives it
  std::string function;              // of a replacement: "shape", "dtype", "number", "last_dims", "extents" of ...
  std::uint32_t argument = kNoName;  // ... this value
  std::int64_t count = 0;
  // Of extents(x, d): the attribute that names the dimensions. Of batched(y, a): the value with a's last two
  // dimensions.
  std::uint32_t second = kNoName;
  // "1/a", "a*b/c": a number and names of numbers, each multiplied or divided by; names that were not met are 1
  struct Factor {
    std::uint32_t name = kNoName;
    double number = 1;
    bool divides = false;
  };
  std::vector<Factor> factors;
  // "[g, -1, extent(w, 1)]" of a replacement: a list that is not literal alone; names that were not met are 1
  std::vector<PatternAttribute> elements;
};

struct PatternTerm;

// The terms inside of a term. They never change, and what stands for them in several places (a form's argument) shares
// them.
class PatternTerms {
 public:
  PatternTerms() = default;
  explicit PatternTerms(std::vector<PatternTerm> terms);

  const PatternTerm* begin() const;
  const PatternTerm* end() const;
  std::size_t size() const;
  bool empty() const { return size() == 0; }
  const PatternTerm& operator[](std::size_t i) const;
  const PatternTerm& front() const;
  // With those inside of them, each as often as it is met.
  std::size_t count_in_all() const { return count_in_all_; }

 private:
  std::shared_ptr<const std::vector<PatternTerm>> terms_;
  std::size_t count_in_all_ = 0;
};

struct PatternTerm {
  enum class Kind : std::uint8_t { kAny, kName, kNumber, kNode, kAlternatives, kThrough, kChain };
  Kind kind = Kind::kAny;
  std::uint32_t name = kNoName;  // kName: which; of others: the name of the part
  bool may_be_absent = false;    // "bias?"
  double number = 0;
  bool exact = true;  // kNumber: written as a whole number
  std::string op;     // kNode: an op, "view" or "permutation"
  std::optional<std::uint32_t> output;
  PatternTerms operands;  // kNode; kAlternatives; kThrough, kChain: the one behind
  std::vector<PatternAttribute> attributes;
  std::size_t token = 0;  // where the parser read it, for its errors; 0 where it did not
};

inline PatternTerms::PatternTerms(std::vector<PatternTerm> terms) {
  for (const PatternTerm& term : terms) count_in_all_ += 1 + term.operands.count_in_all();
  terms_ = std::make_shared<const std::vector<PatternTerm>>(std::move(terms));
}
inline const PatternTerm* PatternTerms::begin() const {
  return terms_ ? terms_->data() : nullptr;
}
inline const PatternTerm* PatternTerms::end() const {
  return begin() + size();
}
inline std::size_t PatternTerms::size() const {
  return terms_ ? terms_->size() : 0;
}
inline const PatternTerm& PatternTerms::operator[](std::size_t i) const {
  return (*terms_)[i];
}
inline const PatternTerm& PatternTerms::front() const {
  return terms_->front();
}

// "dtype(x, float16, bfloat16)", "not same_shape(a, b)".
struct PatternCondition {
  struct Argument {
    std::uint32_t name = kNoName;
    std::optional<double> number;
    std::string word;
  };
  std::string predicate;
  bool negated = false;
  std::vector<Argument> arguments;
  std::string text;
};

// What a pattern found in a graph. Values by the pattern's names, kNone where a name was not met.
struct FusionPattern;
struct PatternMatch {
  const FusionPattern* pattern = nullptr;
  NodeId root = kNone;
  std::vector<NodeId> nodes;  // in topological order, the root last
  std::vector<ValueId> values;
  std::vector<std::optional<AttributeValue>> attributes;
};

// A graph as it is searched: who reads what, and which values are outputs.
struct SearchedGraph {
  explicit SearchedGraph(const Graph& searched);
  const Graph& graph;
  Uses uses;
  std::vector<std::uint8_t> is_output;  // by value
  std::vector<bool> taken;              // by node: other matches have these; no match may hold them
};

// What a check of one's own is given besides the match: as TVM's PatternCheckContext, the matched root, the annotated
// parts, the matched values, all uses of each, and who makes what (graph.value(v).producer).
struct PatternCheckContext {
  const SearchedGraph& searched;
  const PatternMatch& match;
  std::vector<NodeId>* seen = nullptr;  // gets the nodes that were looked at beyond those that make matched values
  const Graph& graph() const { return searched.graph; }
  void look_at(NodeId n) const {
    if (seen && n != kNone) seen->push_back(n);
  }
  ValueId value(std::string_view name) const;  // kNone where the pattern has no such name or it was not met
};

enum class Becomes : std::uint8_t {
  kGroup,    // the matched nodes are one group
  kRewrite,  // another expression takes the root's place
  kLibrary,  // the matched nodes are one call of a library
};

struct FusionPattern {
  std::string name;     // with its backend: "fusec.swiglu", "cublaslt.matmul_bias"
  std::string summary;  // one sentence
  int priority = 0;     // higher ones are tried first; equal ones in the order of declaration
  PatternTerm match;
  std::vector<std::string> names;  // by number
  std::vector<PatternCondition> conditions;
  std::vector<std::uint32_t> escaping;  // names of parts whose values may also be read elsewhere
  Becomes becomes = Becomes::kGroup;
  PatternTerm replacement;  // kRewrite
  GroupCode code = GroupCode::kFusec;
  bool bind_constants = false;  // the constants that the nodes read belong to the group
  // Attributes of a group: name, and the name in the pattern whose number or attribute it is.
  std::vector<std::pair<std::string, std::uint32_t>> group_attributes;
  std::string match_text, becomes_text;
  std::string file;  // where it was read; "" for a built-in one
  std::size_t line = 0;

  // Beyond the text, by code: "" for yes, else why not; and further attributes of the group.
  std::function<std::string(const PatternCheckContext&)> check;
  std::function<std::vector<std::pair<std::string, std::string>>(const PatternCheckContext&)> attributes_getter;
};

inline bool is_builtin(const FusionPattern& pattern) {
  return pattern.file.empty();
}

// In the order in which they are tried.
using PatternList = std::vector<std::shared_ptr<const FusionPattern>>;

}  // namespace fusec
