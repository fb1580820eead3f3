// A fusion pattern declares what it matches, under which conditions, and what the match becomes. Built-in patterns
// (builtin/*.patterns) and a user's own (--patterns=FILE, the library) share one parser and one matcher.
//
//   pattern fusec.relu_squared priority 100
//     "the square of a relu, as one group"
//     match   mul(act: relu(x), act)
//     where   dtype(x, float16, bfloat16, float32)
//     becomes group
//
// Terms:
//
//   x                      any value; the same name twice must be the same value
//   _                      any value
//   gate: linear(x, w)     names the value that a part matches; a named part appears in reports
//   mul(a, b)              a node of that op; operands of commutative ops match in either order. Further operands must
//                          be absent. `view` is any op that only reshapes, `permutation` is permute or transpose,
//                          `transposed` exchanges the last two dimensions, `piece` is any result of split, chunk, slice
//                          or select
//   softmax(x, dim=d)      an attribute: a literal, alternatives ("none" | absent), or a name that binds it (the same
//                          name twice must be equal; dimensions are counted from 0)
//   bias?                  an operand that may be absent
//   cast(x)?               a node that may be absent: cast(x), or else x
//   split(x).1             the second result of a node
//   ~x                     x behind transparent nodes: views, expands, casts that keep the meaning (only in patterns
//                          that become groups, where these nodes become part of the match)
//   chain(linear(x, w))    the given node and one or more elementwise nodes after it: all nodes on all paths to the end
//                          of the chain. Other operands of theirs may be anything. Their values may also be read
//                          elsewhere after the match
//   1, 0.5, -inf           a number operand, or a constant whose elements all equal the number. Integers match exactly;
//                          a number with a point to a millionth, or as rounded to the constant's dtype
//   (relu(x) | gelu(x))    alternatives, tried in order
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/fusion_plan.h"
#include "ir/graph.h"

namespace fusec {

inline constexpr std::uint32_t kNoName = 0xffffffffu;

// The allowed values of an attribute, or (in a replacement) how its value is made.
struct PatternAttribute {
  std::string name;
  std::vector<AttributeValue> allowed;  // literals: text, integers, numbers, flags, lists of integers
  bool may_be_absent = false;
  std::uint32_t bound = kNoName;     // the name that binds the value; in a replacement, the name that gives it
  std::string function;              // in a replacement: "shape", "dtype", "number", "last_dims", "extents", ...
  std::uint32_t argument = kNoName;  // the value that the function is applied to
  std::int64_t count = 0;            // the integer argument of last_dims and extent
  // For extents(x, d): the attribute that names the dimensions. For batched(y, a): the value that gives the last two
  // dimensions.
  std::uint32_t second = kNoName;
  // "1/a", "a*b/c": numbers and names of numbers, each multiplied or divided by. A name without a match counts as 1.
  struct Factor {
    std::uint32_t name = kNoName;
    double number = 1;
    bool divides = false;
  };
  std::vector<Factor> factors;
  // "[g, -1, extent(w, 1)]" in a replacement: a list with computed elements. A name without a match counts as 1.
  std::vector<PatternAttribute> elements;
};

struct PatternTerm;

// The terms inside a term, in a PatternMemory. Copies share them (the argument of a form may occur several times).
class PatternTerms {
 public:
  PatternTerms() = default;

  const PatternTerm* begin() const { return begin_; }
  const PatternTerm* end() const;
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const PatternTerm& operator[](std::size_t i) const;
  const PatternTerm& front() const { return *begin_; }
  // The number of terms including nested ones. A shared term counts each time.
  std::size_t count_in_all() const { return count_in_all_; }
  std::size_t depth() const { return depth_; }  // 1 + the greatest depth inside

 private:
  friend class PatternMemory;
  const PatternTerm* begin_ = nullptr;
  std::uint32_t size_ = 0, depth_ = 0;
  std::size_t count_in_all_ = 0;
};

struct PatternTerm {
  enum class Kind : std::uint8_t { kAny, kName, kNumber, kNode, kAlternatives, kThrough, kChain };
  Kind kind = Kind::kAny;
  bool may_be_absent = false;    // "bias?"
  bool exact = true;             // kNumber: written as a whole number
  std::uint32_t name = kNoName;  // the name itself (kName), or the name of this part
  double number = 0;
  std::string_view op;  // kNode: an op, or a class of ops such as "view"
  std::optional<std::uint32_t> output;
  PatternTerms operands;  // of kNode and kAlternatives; of kThrough and kChain the one inner term
  std::span<const PatternAttribute> attributes;
  std::size_t token = 0;  // the parser's token, for errors; 0 if the term was not parsed
};

inline const PatternTerm* PatternTerms::end() const {
  return begin_ + size_;
}
inline const PatternTerm& PatternTerms::operator[](std::size_t i) const {
  return begin_[i];
}

// Owns what the terms of a text's patterns refer to. Terms have no destructors, since a pattern has up to thousands of
// them.
class PatternMemory {
 public:
  PatternTerms keep(std::span<const PatternTerm> terms);
  // In two steps: room for terms that are made in place, which then are kept.
  std::span<PatternTerm> room_for(std::size_t count);
  static PatternTerms kept(std::span<const PatternTerm> terms);
  std::span<const PatternAttribute> keep(std::vector<PatternAttribute> attributes);
  std::string_view keep(std::string_view word);

 private:
  std::pmr::monotonic_buffer_resource memory_{std::size_t{1} << 15};
  std::deque<std::vector<PatternAttribute>> attributes_;
};

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

// A match of a pattern in a graph. `values` and `attributes` are indexed by the pattern's names; kNone and nothing mean
// that the name was not matched.
struct FusionPattern;
struct PatternMatch {
  const FusionPattern* pattern = nullptr;
  NodeId root = kNone;
  std::vector<NodeId> nodes;  // in topological order, the root last
  std::vector<ValueId> values;
  std::vector<std::optional<AttributeValue>> attributes;
};

// A graph with the indices that a search needs.
struct SearchedGraph {
  explicit SearchedGraph(const Graph& searched);
  // Whether a match may include the node. It may not include one that was added after this object was made.
  bool may_match(NodeId n) const {
    return n < taken.size() && !taken[n] && graph.nodes[n].fuse && !graph.nodes[n].pattern;
  }
  const Graph& graph;
  Uses uses;
  std::vector<std::uint8_t> is_output;  // by value
  std::vector<bool> taken;              // by node: part of another match, so no new match may include it
};

// The argument of a pattern's check, like TVM's PatternCheckContext: the match with its root and named parts, and the
// graph with the uses and producers of every value.
struct PatternCheckContext {
  const SearchedGraph& searched;
  const PatternMatch& match;
  std::vector<NodeId>* seen = nullptr;  // collects examined nodes besides the producers of matched values
  const Graph& graph() const { return searched.graph; }
  void look_at(NodeId n) const {
    if (seen && n != kNone) seen->push_back(n);
  }
  ValueId value(std::string_view name) const;  // kNone if the pattern has no such name, or it was not matched
};

enum class Becomes : std::uint8_t {
  kGroup,    // the matched nodes become one group
  kRewrite,  // another expression replaces the root
  kLibrary,  // the matched nodes become one library call
};

struct FusionPattern {
  std::string name;     // with its backend: "fusec.swiglu", "cublaslt.matmul_bias"
  std::string summary;  // one sentence
  int priority = 0;     // higher priorities are tried first; equal ones in the order of declaration
  std::shared_ptr<const PatternMemory> memory;  // of `match` and `replacement`
  PatternTerm match;
  std::vector<std::string> names;  // by number
  std::vector<PatternCondition> conditions;
  std::vector<std::uint32_t> escaping;  // names of parts whose values may also be read elsewhere
  Becomes becomes = Becomes::kGroup;
  PatternTerm replacement;  // kRewrite
  GroupCode code = GroupCode::kFusec;
  bool bind_constants = false;  // the group owns the constants that its nodes read
  // Attributes of a group: their names, and the pattern's names that give the values.
  std::vector<std::pair<std::string, std::uint32_t>> group_attributes;
  std::string match_text, becomes_text;
  std::string file;      // the file it was read from; "" for a built-in pattern
  std::size_t line = 0;  // in that file, from 1

  // Optional functions in code. `check` returns why the match is refused, "" to accept it; `attributes_getter` returns
  // further attributes of the group.
  std::function<std::string(const PatternCheckContext&)> check;
  std::function<std::vector<std::pair<std::string, std::string>>(const PatternCheckContext&)> attributes_getter;
};

inline bool is_builtin(const FusionPattern& pattern) {
  return pattern.file.empty();
}

}  // namespace fusec
