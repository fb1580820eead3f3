#include "transforms/patterns/match.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "ir/budget.h"
#include "ir/constant_data.h"
#include "ir/float_formats.h"
#include "ir/spelling.h"
#include "transforms/algebraic_rules.h"
#include "transforms/patterns/attribute_values.h"
#include "transforms/patterns/conditions.h"
#include "transforms/patterns/pattern_chain.h"
#include "transforms/patterns/pattern_roots.h"

namespace fusec {
namespace {

constexpr int kMostMatchSteps = 20000;
constexpr int kLongestThrough = 8;  // transparent nodes in a row

// Whether a cast counts as transparent: a widening of a float of 16 bits or more to float32 or float64, or a narrowing
// of float32 or float64 to the 16-bit dtype of the match's result.
bool keeps_meaning(DType from, DType to, DType result) {
  if (!is_float(from) || !is_float(to)) return false;
  if (from == to) return true;
  const bool half = to == DType::kFloat16 || to == DType::kBFloat16;
  if (bits(to) > bits(from) && bits(to) >= 32) return bits(from) >= 16;
  return half && to == result && bits(from) >= 32;
}

class Matcher {
 public:
  Matcher(const SearchedGraph& searched, const FusionPattern& pattern, NodeId root, NearMiss* miss,
          std::vector<NodeId>* seen)
      : searched_(searched), graph_(searched.graph), pattern_(pattern), miss_(miss), seen_(seen) {
    match_.pattern = &pattern;
    match_.root = root;
    match_.values.assign(pattern.names.size(), kNone);
    match_.attributes.resize(pattern.names.size());
  }

  std::optional<PatternMatch> run() {
    const Node& root = graph_.nodes[match_.root];
    if (graph_.type(root.first_output).is_tuple) return std::nullopt;
    result_dtype_ = graph_.tensor(root.first_output).dtype;
    const bool found = matches(pattern_.match, root.first_output, [&] { return accepted(); });
    if (!found && steps_ > kMostMatchSteps)
      refuse([] { return std::string("the search was given up: too many ways"); });
    if (!found) return std::nullopt;
    return std::move(result_);
  }

 private:
  // The continuation of a match: a reference to a function that outlives it.
  class Next {
   public:
    template <class Function>
    Next(const Function& function)  // NOLINT(google-explicit-constructor): as std::function has it
        : function_(&function), call_([](const void* f) { return (*static_cast<const Function*>(f))(); }) {}
    bool operator()() const { return call_(function_); }

   private:
    const void* function_;
    bool (*call_)(const void*);
  };

  // Reports a node to `seen_`; the caller of match_pattern adds the producers of its operands.
  void look_at(NodeId n) const {
    if (seen_ && (seen_->empty() || seen_->back() != n)) seen_->push_back(n);
  }

  // Keeps the nearest miss. Of two that came equally far, a specific one wins, else the first. Returns false: the
  // answer of a test that fails.
  template <class Text>
  bool refuse(Text text, bool specific = false) {
    if (!miss_) return false;
    const auto rank = [](bool whole, std::size_t nodes, bool is_specific) {
      return std::tuple(whole, nodes, is_specific);
    };
    const bool nearer =
        rank(whole_, match_.nodes.size(), specific) > rank(miss_->whole, miss_->nodes.size(), miss_->specific);
    if (!nearer && !miss_->why.empty()) return false;
    miss_->nodes = match_.nodes;
    miss_->whole = whole_;
    miss_->specific = specific;
    miss_->why = text();
    return false;
  }

  std::string described(ValueId v) const {
    if (v == kNone) return "absent";
    const Value& value = graph_.value(v);
    switch (value.kind) {
      case Value::Kind::kNumber:
        return fmt::format("the number {}", graph_.number(v).as_double());
      case Value::Kind::kDim:
        return "a dimension";
      case Value::Kind::kInput:
        return "the input " + in_quotes(value.name);
      case Value::Kind::kConstant:
        return "the constant " + in_quotes(value.name);
      case Value::Kind::kResult:
        break;
    }
    return fmt::format("{}, a {}", in_quotes(value.name), graph_.nodes[value.producer].op->name);
  }

  bool matches(const PatternTerm& term, ValueId v, const Next& next) {
    if (++steps_ > kMostMatchSteps) return false;
    using Kind = PatternTerm::Kind;
    switch (term.kind) {
      case Kind::kAny:
        return v != kNone && bind(term.name, v, next);
      case Kind::kName:
        if (v == kNone) return term.may_be_absent && next();
        return bind(term.name, v, next);
      case Kind::kNumber:
        return matches_number(term, v) && bind(term.name, v, next);
      case Kind::kAlternatives:
        return std::ranges::any_of(term.operands, [&](const PatternTerm& each) {
          if (is_passed_over(term, each, v)) return false;
          return bind(term.name, v, [&] { return matches(each, v, next); });
        });
      case Kind::kThrough:
        return matches_through(term.operands[0], v, kLongestThrough, next);
      case Kind::kNode:
        return matches_node(term, v, next);
      case Kind::kChain:
        return bind(term.name, v, [&] { return matches_chain(term.operands[0], v, next); });
    }
    return false;
  }

  // Skips an alternative whose op differs if another alternative matches any value, so that no miss is reported: in
  // `permutation(w) | w`, a value that is no permutation is w.
  bool is_passed_over(const PatternTerm& alternatives, const PatternTerm& each, ValueId v) const {
    if (each.kind != PatternTerm::Kind::kNode || v == kNone) return false;
    const NodeId producer = graph_.value(v).producer;
    if (producer != kNone && means_op(each.op, *graph_.nodes[producer].op)) return false;
    return std::ranges::any_of(alternatives.operands, [](const PatternTerm& other) {
      return other.kind == PatternTerm::Kind::kAny || other.kind == PatternTerm::Kind::kName;
    });
  }

  bool bind(std::uint32_t name, ValueId v, const Next& next) {
    if (name == kNoName || v == kNone) return next();
    ValueId& bound = match_.values[name];
    if (bound == v || (bound != kNone && same_number(bound, v))) return next();
    if (bound != kNone)
      return refuse([&] {
        return fmt::format("{} is {} in one place and {} in another", pattern_.names[name], described(bound),
                           described(v));
      });
    bound = v;
    if (next()) return true;
    match_.values[name] = kNone;
    return false;
  }

  // Equal numbers may be different values.
  bool same_number(ValueId a, ValueId b) const {
    if (graph_.value(a).kind != Value::Kind::kNumber || graph_.value(b).kind != Value::Kind::kNumber) return false;
    return graph_.number(a) == graph_.number(b);
  }

  bool matches_number(const PatternTerm& term, ValueId v) {
    const std::optional<Scalar> number = number_of(graph_, v);
    bool same = number && is_near(number->as_double(), term.number, term.exact);
    // A constant may hold the number rounded to its dtype.
    if (number && !same && !term.exact && graph_.constant_of(v) && is_float(graph_.tensor(v).dtype))
      same = number->as_double() == round_to_float(graph_.tensor(v).dtype, term.number);
    if (!same)
      refuse([&] { return fmt::format("found {}, expected the number {}", described(v), term.number); },
             number.has_value());
    return same;
  }

  // Matches behind up to `left` transparent nodes, most nodes first. They become part of the match.
  bool matches_through(const PatternTerm& term, ValueId v, int left, const Next& next) {
    if (v == kNone) return matches(term, v, next);
    const NodeId producer = graph_.value(v).producer;
    if (producer != kNone) look_at(producer);
    if (left > 0 && producer != kNone && searched_.may_match(producer) && is_transparent(graph_.nodes[producer])) {
      match_.nodes.push_back(producer);
      if (matches_through(term, graph_.nodes[producer].inputs[0], left - 1, next)) return true;
      match_.nodes.pop_back();
    }
    return matches(term, v, next);
  }

  // Matches a chain: the elementwise nodes on all paths from a value that the term matches to v. Tries the nearest
  // beginnings first.
  bool matches_chain(const PatternTerm& term, ValueId v, const Next& next) {
    const NodeId end = v == kNone ? kNone : graph_.value(v).producer;
    if (end == kNone || !searched_.may_match(end) || !is_chain_node(graph_.nodes[end]))
      return refuse([&] { return fmt::format("found {}, expected an elementwise node", described(v)); });
    PatternChain chain = find_chain(searched_, term, end);
    for (const NodeId n : chain.nodes) look_at(n);
    std::ranges::sort(chain.nodes);
    const std::vector<ValueId>& begins = chain.begins;
    const auto computes = [&](NodeId n) { return !graph_.nodes[n].op->view; };
    const std::size_t nodes_before = match_.nodes.size(), chain_before = in_chain_.size();
    for (std::size_t i = 0; i < begins.size(); ++i) {
      count_step();
      if (std::find(begins.begin(), begins.begin() + i, begins[i]) != begins.begin() + i) continue;
      const std::vector<NodeId> between = nodes_after(graph_, chain.nodes, begins[i]);
      if (std::ranges::none_of(between, computes)) continue;
      for (const NodeId n : between) {
        match_.nodes.push_back(n);
        in_chain_.push_back(n);
      }
      in_chain_.push_back(graph_.value(begins[i]).producer);
      if (matches(term, begins[i], next)) return true;
      match_.nodes.resize(nodes_before);
      in_chain_.resize(chain_before);
    }
    if (!begins.empty()) return false;
    return refuse([&] { return fmt::format("nothing that the pattern begins with leads to {}", described(v)); });
  }

  bool is_transparent(const Node& node) const {
    if (node.output_count != 1 || node.inputs.empty() || node.inputs[0] == kNone) return false;
    if (node.op->name == "cast")
      return keeps_meaning(graph_.tensor(node.inputs[0]).dtype, graph_.tensor(node.first_output).dtype, result_dtype_);
    return (node.op->view && node.op->special == Special::kNone) || node.op->name == "expand" ||
           node.op->name == "identity";
  }

  bool matches_node(const PatternTerm& term, ValueId v, const Next& next) {
    const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
    const Node* node = producer == kNone ? nullptr : &graph_.nodes[producer];
    if (node) look_at(producer);
    if (!node || !means_op(term.op, *node->op) || (term.op == "transposed" && !exchanges_last_two(*node)))
      return refuse_other(term, v);
    if (!searched_.may_match(producer))
      return refuse([&] { return in_quotes(node->name) + " is part of another match, or is to stand apart"; });
    const std::uint32_t output = v - node->first_output;
    const bool any_output = term.op == "piece" && !term.output;
    if (node->output_count > 1 && producer != match_.root && !any_output && (!term.output || *term.output != output))
      return refuse([&] { return fmt::format("found another result of {}", in_quotes(node->name)); });
    // A node that is met twice (two results of one split) is listed once.
    const bool again = std::ranges::find(match_.nodes, producer) != match_.nodes.end();
    if (!again) match_.nodes.push_back(producer);
    const bool found = bind(term.name, v, [&] {
      return matches_attributes(term, *node, 0, [&] { return matches_operands(term, *node, next); });
    });
    if (!found && !again) match_.nodes.pop_back();
    return found;
  }

  // Refuses a node of another op. Reports a node of the wanted op that is behind casts and views, which the pattern
  // does not look through. Returns false.
  bool refuse_other(const PatternTerm& term, ValueId v) {
    if (!miss_) return false;
    constexpr std::size_t kMostBetween = 3;
    std::vector<NodeId> between;
    NodeId n = v == kNone ? kNone : graph_.value(v).producer;
    const bool is_other = n != kNone && term.op == "transposed" && means_op("permutation", *graph_.nodes[n].op);
    if (is_other) between.push_back(n);
    const auto is_it = [&] { return !between.empty() && means_op(term.op, *graph_.nodes[n].op); };
    while (!is_other && n != kNone && !is_it() && between.size() < kMostBetween && !graph_.nodes[n].inputs.empty() &&
           (graph_.nodes[n].op->view || graph_.nodes[n].op->name == "cast" || quantizes(n))) {
      count_step();
      between.push_back(n);
      n = graph_.value(graph_.nodes[n].inputs[0]).producer;
    }
    const bool is_behind = n != kNone && is_it();
    if (!is_behind) between.clear();
    match_.nodes.insert(match_.nodes.end(), between.begin(), between.end());
    refuse(
        [&] {
          if (is_other) return fmt::format("{} exchanges other dimensions than the last two", described(v));
          if (is_behind) return in_between(between) + " between it and " + in_quotes(graph_.nodes[n].name);
          return fmt::format("found {}, expected {}", described(v), term.op);
        },
        is_other || (is_behind && changer(between) != kNone));
    match_.nodes.resize(match_.nodes.size() - between.size());
    return false;
  }

  bool quantizes(NodeId n) const {
    return graph_.nodes[n].op->name == "quantize" || graph_.nodes[n].op->name == "dequantize";
  }

  // The first node that changes the value, kNone for none.
  NodeId changer(const std::vector<NodeId>& between) const {
    const auto found = std::ranges::find_if(between, [&](NodeId n) {
      return quantizes(n) || (graph_.nodes[n].op->name == "cast" && !is_transparent(graph_.nodes[n]));
    });
    return found == between.end() ? kNone : *found;
  }

  std::string in_between(const std::vector<NodeId>& between) const {
    const NodeId n = changer(between) == kNone ? between.front() : changer(between);
    const std::string what = described(graph_.nodes[n].first_output);
    if (quantizes(n)) return what + ", makes a quantized operand of it and stands";
    if (changer(between) == kNone) return what + " stands";
    return fmt::format("{} from {} to {} that may change the value, stands", what,
                       name(graph_.tensor(graph_.nodes[n].inputs[0]).dtype),
                       name(graph_.tensor(graph_.nodes[n].first_output).dtype));
  }

  bool exchanges_last_two(const Node& node) const {
    const auto rank = static_cast<std::int64_t>(graph_.tensor(node.inputs[0]).rank());
    if (rank < 2) return false;
    const std::vector<std::int64_t> dims = permutation_of(graph_, node, static_cast<std::size_t>(rank));
    for (std::int64_t d = 0; d < rank; ++d)
      if (dims[static_cast<std::size_t>(d)] != (d == rank - 1 ? rank - 2 : d == rank - 2 ? rank - 1 : d)) return false;
    return true;
  }

  bool matches_attributes(const PatternTerm& term, const Node& node, std::size_t i, const Next& next) {
    if (i == term.attributes.size()) return has_no_other_attribute(term, node) && next();
    const PatternAttribute& wanted = term.attributes[i];
    const AttributeValue* found = graph_.attributes(node).find(wanted.name);
    const auto fail = [&] {
      return refuse([&] { return fmt::format("the attribute {} of {} is another", wanted.name, in_quotes(node.name)); },
                    true);
    };
    if (!found) {
      if (!wanted.may_be_absent && (wanted.bound == kNoName || !wanted.allowed.empty())) return fail();
      // An absent attribute means all dimensions, which cannot bind as a list.
      if (!wanted.may_be_absent && names_dims(wanted.name)) return fail();
      if (wanted.bound != kNoName && match_.attributes[wanted.bound]) return fail();
      return matches_attributes(term, node, i + 1, next);
    }
    AttributeValue value = *found;
    std::int64_t rank = -1;
    if (names_dims(wanted.name) && !node.inputs.empty() && node.inputs[0] != kNone &&
        !graph_.type(node.inputs[0]).is_tuple) {
      rank = static_cast<std::int64_t>(graph_.tensor(node.inputs[0]).rank());
      if (node.op->name == "stack" || node.op->name == "unsqueeze") ++rank;  // their dims are the result's
      value = from_zero(std::move(value), rank);
    }
    const bool literal = std::ranges::any_of(wanted.allowed, [&](const AttributeValue& each) {
      return is_literal(value, rank >= 0 ? from_zero(each, rank) : each);
    });
    if (wanted.bound == kNoName) return literal ? matches_attributes(term, node, i + 1, next) : fail();
    std::optional<AttributeValue>& bound = match_.attributes[wanted.bound];
    if (bound) return *bound == value ? matches_attributes(term, node, i + 1, next) : fail();
    bound = std::move(value);
    if (matches_attributes(term, node, i + 1, next)) return true;
    match_.attributes[wanted.bound].reset();
    return false;
  }

  // A rewriting pattern must name every attribute of a node. Movement ops and casts are exempt, since their result type
  // determines the attribute.
  bool has_no_other_attribute(const PatternTerm& term, const Node& node) {
    if (pattern_.becomes != Becomes::kRewrite || term.op == "view" || term.op == "permutation" ||
        term.op == "transposed" || term.op == "expand" || term.op == "cast")
      return true;
    for (const Attribute& attribute : graph_.attributes(node).list()) {
      count_step();
      const auto is_it = [&](const PatternAttribute& a) { return a.name == attribute.name; };
      if (std::ranges::any_of(term.attributes, is_it)) continue;
      return refuse([&] { return fmt::format("{} has the attribute {}", in_quotes(node.name), attribute.name); });
    }
    return true;
  }

  bool matches_operands(const PatternTerm& term, const Node& node, const Next& next) {
    for (std::size_t i = term.operands.size(); i < node.inputs.size(); ++i) {
      count_step();
      if (node.inputs[i] == kNone) continue;
      return refuse(
          [&] { return fmt::format("{} has a further operand, {}", in_quotes(node.name), described(node.inputs[i])); });
    }
    const bool two = term.operands.size() == 2 && node.inputs.size() == 2;
    if (matches_operand(term, node, 0, false, next)) return true;
    return two && is_commutative(node.op->name) && matches_operand(term, node, 0, true, next);
  }

  bool matches_operand(const PatternTerm& term, const Node& node, std::size_t i, bool swapped, const Next& next) {
    if (i == term.operands.size()) return next();
    const std::size_t at = swapped ? 1 - i : i;
    const ValueId v = at < node.inputs.size() ? node.inputs[at] : kNone;
    return matches(term.operands[i], v, [&] { return matches_operand(term, node, i + 1, swapped, next); });
  }

  // --- conditions on the whole match

  bool accepted() {
    whole_ = true;
    const bool good = is_accepted();
    whole_ = false;
    return good;
  }

  bool is_accepted() {
    PatternMatch whole = match_;
    std::ranges::sort(whole.nodes);
    whole.nodes.erase(std::unique(whole.nodes.begin(), whole.nodes.end()), whole.nodes.end());
    const PatternCheckContext context{searched_, whole, seen_};
    // Check conditions that walk over many nodes last. For a miss keep the order of the pattern.
    for (const bool far : {false, true})
      for (const PatternCondition& condition : pattern_.conditions) {
        count_step();
        if (far != (!miss_ && looks_unseen(condition))) continue;
        if (const std::string why = unmet(condition, context); !why.empty()) return refuse([&] { return why; }, true);
      }
    if (!is_closed(whole)) return false;
    if (pattern_.check)
      if (const std::string why = pattern_.check(context); !why.empty()) return refuse([&] { return why; });
    result_ = std::move(whole);
    return true;
  }

  // Whether v may be read outside. The values of a chain may be read after the root, from where no path leads back.
  bool may_escape(ValueId v) const {
    const NodeId producer = graph_.value(v).producer;
    if (std::ranges::find(in_chain_, producer) != in_chain_.end() &&
        std::ranges::all_of(searched_.uses.of(v), [&](NodeId reader) {
          return reader > match_.root || std::ranges::find(match_.nodes, reader) != match_.nodes.end();
        }))
      return true;
    return std::ranges::any_of(pattern_.escaping, [&](std::uint32_t n) { return match_.values[n] == v; });
  }

  // Whether only nodes of the match read the results of its inner nodes, escaping values aside.
  bool is_closed(const PatternMatch& whole) {
    const auto inside = [&](NodeId n) { return std::ranges::binary_search(whole.nodes, n); };
    for (const NodeId n : whole.nodes) {
      count_step();
      if (n == whole.root) continue;
      const Node& node = graph_.nodes[n];
      for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v) {
        if (may_escape(v)) continue;
        const auto readers = searched_.uses.of(v);
        const auto outside = std::ranges::find_if_not(readers, inside);
        if (outside != readers.end())
          return refuse([&] {
            return fmt::format("{} is read by {} as well", in_quotes(graph_.value(v).name),
                               in_quotes(graph_.nodes[*outside].name));
          });
        if (searched_.is_output[v])
          return refuse([&] { return in_quotes(graph_.value(v).name) + " is an output of the model as well"; });
      }
    }
    return true;
  }

  const SearchedGraph& searched_;
  const Graph& graph_;
  const FusionPattern& pattern_;
  NearMiss* miss_;
  std::vector<NodeId>* seen_;
  PatternMatch match_, result_;
  DType result_dtype_ = DType::kFloat32;
  bool whole_ = false;            // all nodes are found, and conditions are being checked
  std::vector<NodeId> in_chain_;  // nodes of chains, and the nodes that chains begin with
  int steps_ = 0;
};

}  // namespace

SearchedGraph::SearchedGraph(const Graph& searched)
    : graph(searched),
      uses(uses_of(searched)),
      is_output(searched.value_count(), 0),
      taken(searched.nodes.size(), false) {
  for (const ValueId v : searched.outputs) is_output[v] = 1;
}

ValueId PatternCheckContext::value(std::string_view name) const {
  const auto& names = match.pattern->names;
  const auto it = std::ranges::find(names, name);
  return it == names.end() ? kNone : match.values[static_cast<std::size_t>(it - names.begin())];
}

std::optional<PatternMatch> match_pattern(const SearchedGraph& searched, const FusionPattern& pattern, NodeId root,
                                          NearMiss* miss, std::vector<NodeId>* seen) {
  return Matcher(searched, pattern, root, miss, seen).run();
}

}  // namespace fusec
