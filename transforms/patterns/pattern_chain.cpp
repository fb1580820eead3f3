#include "transforms/patterns/pattern_chain.h"

#include <algorithm>

#include "ir/budget.h"
#include "transforms/patterns/pattern_roots.h"

namespace fusec {
namespace {

constexpr std::size_t kMostBegins = 4;

std::uint64_t mark(NodeId n) {
  return std::uint64_t{1} << (n % 64);
}

bool begins_with(const PatternTerm& term, const OpDef& op) {
  if (term.kind == PatternTerm::Kind::kAlternatives)
    return std::ranges::any_of(term.operands, [&](const PatternTerm& each) { return begins_with(each, op); });
  return term.kind == PatternTerm::Kind::kNode && means_op(term.op, op);
}

}  // namespace

PatternChain find_chain(const SearchedGraph& searched, const PatternTerm& begin, NodeId end) {
  const Graph& graph = searched.graph;
  PatternChain chain{.nodes = {end}, .begins = {}};
  std::vector<NodeId>& nodes = chain.nodes;
  nodes.reserve(kLongestChain);
  std::uint64_t marks = mark(end);  // a bit filter of the nodes in the chain
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    count_step();
    for (const ValueId operand : graph.nodes[nodes[at]].inputs) {
      const NodeId producer = operand == kNone ? kNone : graph.value(operand).producer;
      if (producer == kNone) continue;
      if ((marks & mark(producer)) != 0 && std::ranges::find(nodes, producer) != nodes.end()) continue;
      if (chain.begins.size() < kMostBegins && begins_with(begin, *graph.nodes[producer].op))
        chain.begins.push_back(operand);
      if (nodes.size() < kLongestChain && searched.may_match(producer) && is_chain_node(graph.nodes[producer])) {
        nodes.push_back(producer);
        marks |= mark(producer);
      }
    }
  }
  return chain;
}

std::vector<NodeId> nodes_after(const Graph& graph, const std::vector<NodeId>& nodes, ValueId begin) {
  std::vector<NodeId> result;
  for (const NodeId n : nodes)
    if (std::ranges::any_of(graph.nodes[n].inputs, [&](ValueId v) {
          return v != kNone && (v == begin || std::ranges::binary_search(result, graph.value(v).producer));
        }))
      result.push_back(n);
  return result;
}

}  // namespace fusec
