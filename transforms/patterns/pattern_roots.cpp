#include "transforms/patterns/pattern_roots.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "transforms/algebraic_rules.h"

namespace fusec {
namespace {

using Kind = PatternTerm::Kind;

void collect_roots(const PatternTerm& term, std::vector<const PatternTerm*>& roots) {
  if (term.kind == Kind::kAlternatives) {
    for (const PatternTerm& each : term.operands) collect_roots(each, roots);
  } else {
    roots.push_back(&term);
  }
}

bool is_transparent_op(const OpDef& op) {
  return op.name == "cast" || op.name == "expand" || op.name == "identity" || (op.view && op.special == Special::kNone);
}
bool has_one_result_of_one(const Node& node) {
  return node.output_count == 1 && !node.inputs.empty() && node.inputs[0] != kNone;
}

bool is_elementwise(const OpDef& op) {
  return op.family == "unary" || op.family == "binary" || op.family == "ternary" || op.view || op.name == "expand" ||
         op.name == "quantize" || op.name == "dequantize";
}
bool may_be_in_chain(const OpDef& op) {
  return op.special == Special::kNone && !op.custom && (is_elementwise(op) || op.family == "gated");
}

// Takes what stands before the separator, and the separator, from the beginning of the text.
std::string_view take_first(std::string_view& text, char separator) {
  const std::string_view first = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(first.size() + 1, text.size()));
  return first;
}

}  // namespace

bool means_op(std::string_view word, const OpDef& op) {
  if (op.custom) return op.name == word;
  if (word == "piece") return op.name == "split" || op.name == "slice" || op.name == "chunk" || op.name == "select";
  return is_meant(word == "transposed" ? "permutation" : word, op);
}

bool is_chain_node(const Node& node) {
  const OpDef& op = *node.op;
  if (node.output_count != 1 || !may_be_in_chain(op)) return false;
  if (op.family == "gated" && !op.view) return node.inputs.size() == 2 && node.inputs[1] != kNone;
  return true;
}

PatternRoots::PatternRoots(const Graph& graph) : graph_(graph), op_of_(graph.nodes.size()), begin_(1, 0) {
  std::unordered_map<const OpDef*, std::uint32_t> place;
  std::vector<std::size_t> count;
  const OpDef* last = nullptr;
  std::uint32_t number = 0;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    const OpDef* op = graph.nodes[n].op;
    if (op != last) {
      const auto [it, fresh] = place.try_emplace(op, static_cast<std::uint32_t>(ops_.size()));
      if (fresh) {
        ops_.push_back(op);
        count.push_back(0);
      }
      number = it->second;
      last = op;
    }
    op_of_[n] = number;
    ++count[number];
  }
  for (const std::size_t nodes : count) begin_.push_back(begin_.back() + nodes);
  nodes_.resize(graph.nodes.size());
  std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
  for (NodeId n = 0; n < graph.nodes.size(); ++n) nodes_[next[op_of_[n]]++] = n;
}

bool PatternRoots::has(std::string_view word) const {
  const auto [it, fresh] = has_.try_emplace(word, false);
  if (fresh) it->second = std::ranges::any_of(ops_, [&](const OpDef* op) { return means_op(word, *op); });
  return it->second;
}

bool PatternRoots::has_needed(std::string_view needed_ops) const {
  while (!needed_ops.empty()) {
    std::string_view any_of = take_first(needed_ops, ' ');
    bool found = false;
    while (!any_of.empty() && !found) found = has(take_first(any_of, '|'));
    if (!found) return false;
  }
  return true;
}

bool PatternRoots::may_be_met(const PatternTerm& term) const {
  if (term.kind == Kind::kNode && !has(term.op)) return false;
  const auto may_be = [&](const PatternTerm& each) { return may_be_met(each); };
  return term.kind == Kind::kAlternatives ? std::ranges::any_of(term.operands, may_be)
                                          : std::ranges::all_of(term.operands, may_be);
}

std::uint64_t PatternRoots::bits_of(std::string_view word) const {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < ops_.size(); ++i)
    if (means_op(word, *ops_[i])) bits |= std::uint64_t{1} << (i % 64);
  return bits;
}

PatternRoots::Needed PatternRoots::needed(const PatternTerm& term, int depth) const {
  constexpr int kFarthest = 2;
  if (depth > kFarthest) return {};
  Needed result;
  if (term.kind == Kind::kThrough) return needed(term.operands[0], depth);
  if (term.kind == Kind::kAlternatives) {
    result.any = true;
    for (const PatternTerm& each : term.operands) {
      Needed part = needed(each, depth);
      if (part.nothing()) return {};
      result.parts.push_back(std::move(part));
    }
    return result;
  }
  if (term.kind != Kind::kNode) return {};
  if (depth > 0) {
    const std::uint64_t bits = bits_of(term.op);
    if (bits == 0) return {.any = true};  // never
    (depth == 1 ? result.near : result.far) = bits;
  }
  for (const PatternTerm& operand : term.operands)
    if (Needed part = needed(operand, depth + 1); !part.nothing()) result.parts.push_back(std::move(part));
  return result;
}

bool PatternRoots::is_possible(const Needed& needed, const Near& found) {
  if (needed.near != 0 && (needed.near & found.near) == 0) return false;
  if (needed.far != 0 && (needed.far & found.far) == 0) return false;
  const auto possible = [&](const Needed& part) { return is_possible(part, found); };
  return needed.any ? std::ranges::any_of(needed.parts, possible) : std::ranges::all_of(needed.parts, possible);
}

void PatternRoots::find_near() const {
  if (!near_.empty()) return;
  const std::size_t count = graph_.nodes.size();
  std::vector<std::uint8_t> views(ops_.size());
  for (std::size_t i = 0; i < ops_.size(); ++i) views[i] = is_transparent_op(*ops_[i]) ? 1 : 0;
  // By node: the op that makes its value, or ops behind it if it is transparent; and the ops that make their operands.
  LargeVector<Near> behind(count);
  near_.resize(count);
  for (NodeId n = 0; n < count; ++n) {
    const Node& node = graph_.nodes[n];
    for (const ValueId v : node.inputs) {
      const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
      if (producer == kNone) continue;
      near_[n].near |= behind[producer].near;
      near_[n].far |= behind[producer].far;
    }
    behind[n] = {.near = std::uint64_t{1} << (op_of_[n] % 64), .far = near_[n].near};
    if (views[op_of_[n]] != 0 && has_one_result_of_one(node)) {
      behind[n].near |= near_[n].near;
      behind[n].far |= near_[n].far;
    }
  }
}

// Adds the nodes that a chain may end with: at most kLongestChain chain nodes lead from a possible beginning to them.
void PatternRoots::add_chains(const PatternTerm& chain, std::vector<NodeId>& found) const {
  std::vector<const PatternTerm*> begins;
  collect_roots(chain.operands[0], begins);
  constexpr std::uint8_t kFar = 255;
  std::vector<std::uint8_t> steps(graph_.nodes.size(), kFar);
  for (const PatternTerm* begin : begins) {
    if (begin->kind != Kind::kNode) continue;
    const Needed near = needed(*begin, 0);
    if (!near.nothing()) find_near();
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (means_op(begin->op, *ops_[i]))
        for (const NodeId n : nodes_of(i))
          if (near.nothing() || is_possible(near, near_[n])) steps[n] = 0;
  }
  std::vector<std::uint8_t> may_be_in(ops_.size());
  for (std::size_t i = 0; i < ops_.size(); ++i) may_be_in[i] = may_be_in_chain(*ops_[i]) ? 1 : 0;
  for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
    if (steps[n] == 0 || may_be_in[op_of_[n]] == 0) continue;
    const Node& node = graph_.nodes[n];
    for (const ValueId v : node.inputs) {
      const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
      if (producer != kNone && steps[producer] < kLongestChain)
        steps[n] = std::min<std::uint8_t>(steps[n], steps[producer] + 1);
    }
    if (steps[n] != kFar && is_chain_node(node))
      found.push_back(n);
    else
      steps[n] = kFar;
  }
}

std::vector<NodeId> PatternRoots::of(const ListedPattern& listed) const {
  return has_needed(listed.needed_ops()) ? of(*listed) : std::vector<NodeId>();
}

std::vector<NodeId> PatternRoots::of(const FusionPattern& pattern) const {
  if (!may_be_met(pattern.match)) return {};
  std::vector<const PatternTerm*> roots;
  collect_roots(pattern.match, roots);
  std::vector<NodeId> found;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    Needed any{.any = true};
    bool free = false, some = false;
    for (const PatternTerm* root : roots) {
      if (root->kind != Kind::kNode || !means_op(root->op, *ops_[i])) continue;
      some = true;
      any.parts.push_back(needed(*root, 0));
      free = free || any.parts.back().nothing();
    }
    if (!some) continue;
    if (!free) find_near();
    for (const NodeId n : nodes_of(i))
      if (free || is_possible(any, near_[n])) found.push_back(n);
  }
  for (const PatternTerm* root : roots)
    if (root->kind == Kind::kChain) add_chains(*root, found);
  if (std::ranges::is_sorted(found, std::less_equal<>())) return found;  // without duplicates
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace fusec
