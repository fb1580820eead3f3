#include "transforms/patterns/pattern_roots.h"

#include <algorithm>
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

bool may_be_looked_through(const Node& node) {
  if (node.output_count != 1 || node.inputs.empty() || node.inputs[0] == kNone) return false;
  return node.op->name == "cast" || node.op->name == "expand" || node.op->name == "identity" ||
         (node.op->view && node.op->special == Special::kNone);
}

}  // namespace

bool means_op(std::string_view word, const OpDef& op) {
  if (op.custom) return op.name == word;
  if (word == "piece") return op.name == "split" || op.name == "slice" || op.name == "chunk" || op.name == "select";
  return is_meant(word == "transposed" ? "permutation" : word, op);
}

bool is_chain_node(const Node& node) {
  const OpDef& op = *node.op;
  if (node.output_count != 1 || op.special != Special::kNone || op.custom) return false;
  if (op.family == "unary" || op.family == "binary" || op.family == "ternary" || op.view) return true;
  if (op.family == "gated") return node.inputs.size() == 2 && node.inputs[1] != kNone;
  return op.name == "expand" || op.name == "quantize" || op.name == "dequantize";
}

PatternRoots::PatternRoots(const Graph& graph) : graph_(graph) {
  std::unordered_map<const OpDef*, std::size_t> place;
  const OpDef* last = nullptr;
  std::vector<NodeId>* list = nullptr;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    const OpDef* op = graph.nodes[n].op;
    if (op != last) {
      const auto [it, fresh] = place.try_emplace(op, by_op_.size());
      if (fresh) by_op_.push_back({op, {}});
      list = &by_op_[it->second].second;
      last = op;
    }
    list->push_back(n);
  }
}

bool PatternRoots::has(std::string_view word) const {
  const auto [it, fresh] = has_.try_emplace(word, false);
  if (fresh) it->second = std::ranges::any_of(by_op_, [&](const auto& entry) { return means_op(word, *entry.first); });
  return it->second;
}

bool PatternRoots::may_be_met(const PatternTerm& term) const {
  if (term.kind == Kind::kNode && !has(term.op)) return false;
  const auto may_be = [&](const PatternTerm& each) { return may_be_met(each); };
  return term.kind == Kind::kAlternatives ? std::ranges::any_of(term.operands, may_be)
                                          : std::ranges::all_of(term.operands, may_be);
}

std::uint64_t PatternRoots::bits_of(std::string_view word) const {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < by_op_.size(); ++i)
    if (means_op(word, *by_op_[i].first)) bits |= std::uint64_t{1} << (i % 64);
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
  std::vector<std::uint64_t> own(count);
  for (std::size_t i = 0; i < by_op_.size(); ++i)
    for (const NodeId n : by_op_[i].second) own[n] = std::uint64_t{1} << (i % 64);
  // What makes a value, seen through transparent nodes: ops, and those of their operands.
  std::vector<Near> behind(count);
  near_.resize(count);
  for (NodeId n = 0; n < count; ++n) {
    const Node& node = graph_.nodes[n];
    for (const ValueId v : node.inputs) {
      const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
      if (producer == kNone) continue;
      near_[n].near |= behind[producer].near;
      near_[n].far |= behind[producer].far;
    }
    behind[n] = {.near = own[n], .far = near_[n].near};
    if (may_be_looked_through(node)) {
      behind[n].near |= near_[n].near;
      behind[n].far |= near_[n].far;
    }
  }
}

// Nodes from which elementwise nodes lead back to what the chain begins with.
void PatternRoots::add_chains(const PatternTerm& chain, std::vector<NodeId>& found) const {
  std::vector<const PatternTerm*> begins;
  collect_roots(chain.operands[0], begins);
  constexpr std::uint8_t kFar = 255;
  std::vector<std::uint8_t> steps(graph_.nodes.size(), kFar);
  for (const PatternTerm* begin : begins) {
    if (begin->kind != Kind::kNode) continue;
    const Needed near = needed(*begin, 0);
    if (!near.nothing()) find_near();
    for (const auto& [op, nodes] : by_op_)
      if (means_op(begin->op, *op))
        for (const NodeId n : nodes)
          if (near.nothing() || is_possible(near, near_[n])) steps[n] = 0;
  }
  for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
    const Node& node = graph_.nodes[n];
    if (steps[n] == 0 || !is_chain_node(node)) continue;
    for (const ValueId v : node.inputs) {
      const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
      if (producer != kNone && steps[producer] < kLongestChain)
        steps[n] = std::min<std::uint8_t>(steps[n], steps[producer] + 1);
    }
    if (steps[n] != kFar) found.push_back(n);
  }
}

std::vector<NodeId> PatternRoots::of(const FusionPattern& pattern) const {
  if (!may_be_met(pattern.match)) return {};
  std::vector<const PatternTerm*> roots;
  collect_roots(pattern.match, roots);
  std::vector<NodeId> found;
  for (const auto& [op, nodes] : by_op_) {
    Needed any{.any = true};
    bool free = false, some = false;
    for (const PatternTerm* root : roots) {
      if (root->kind != Kind::kNode || !means_op(root->op, *op)) continue;
      some = true;
      any.parts.push_back(needed(*root, 0));
      free = free || any.parts.back().nothing();
    }
    if (!some) continue;
    if (!free) find_near();
    for (const NodeId n : nodes)
      if (free || is_possible(any, near_[n])) found.push_back(n);
  }
  for (const PatternTerm* root : roots)
    if (root->kind == Kind::kChain) add_chains(*root, found);
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace fusec
