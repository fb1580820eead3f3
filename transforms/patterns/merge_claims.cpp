#include "transforms/patterns/merge_claims.h"

#include <algorithm>
#include <utility>

#include "ir/digraph.h"
#include "ir/error.h"

namespace fusec {
namespace {

// A topological order with the nodes of each claim contiguous. Of the nodes and claims that are ready, takes the one
// whose last node came first in the old order.
std::vector<NodeId> order_of(const Graph& graph, const std::vector<PatternClaim>& claims,
                             const std::vector<std::uint32_t>& claim_of) {
  const NodeId count = static_cast<NodeId>(graph.nodes.size());
  const auto leader = [&](NodeId n) { return claim_of[n] == kNone ? n : claims[claim_of[n]].nodes.back(); };
  const Digraph followers = digraph_of(count, [&](auto edge) {
    for (NodeId n = 0; n < count; ++n)
      for (const ValueId v : graph.nodes[n].inputs) {
        const NodeId producer = v == kNone ? kNone : graph.value(v).producer;
        if (producer != kNone && leader(producer) != leader(n)) edge(leader(producer), leader(n));
      }
  });
  std::vector<NodeId> order;
  order.reserve(count);
  for (const NodeId n : topological_order(followers)) {
    if (claim_of[n] == kNone)
      order.push_back(n);
    else if (leader(n) == n)
      order.insert(order.end(), claims[claim_of[n]].nodes.begin(), claims[claim_of[n]].nodes.end());
  }
  if (order.size() != count) throw InternalError("claims of patterns close a circle");
  return order;
}

// Sorts claims by their first nodes. Each pattern found its claims from the last node to the first, so reverse first.
void sort_by_nodes(std::vector<PatternClaim>& claims) {
  const auto first_node = [](const PatternClaim& claim) { return claim.nodes.front(); };
  std::ranges::reverse(claims);
  if (std::ranges::is_sorted(claims, {}, first_node)) return;
  std::vector<std::pair<NodeId, std::size_t>> order;
  order.reserve(claims.size());
  for (std::size_t c = 0; c < claims.size(); ++c) order.emplace_back(first_node(claims[c]), c);
  std::ranges::sort(order);
  std::vector<PatternClaim> sorted;
  sorted.reserve(claims.size());
  for (const auto& [node, c] : order) sorted.push_back(std::move(claims[c]));
  claims = std::move(sorted);
}

}  // namespace

void merge_claims(CanonicalGraph& canonical, std::vector<PatternClaim>& claims,
                  const std::vector<std::uint32_t>& claim_of) {
  const auto together = [](const PatternClaim& claim) {
    return claim.nodes.back() - claim.nodes.front() + 1 == claim.nodes.size();
  };
  if (std::ranges::all_of(claims, together)) {
    sort_by_nodes(claims);
    return;
  }
  Graph& graph = canonical.graph;
  const std::vector<NodeId> order = order_of(graph, claims, claim_of);
  std::vector<NodeId> now(order.size());
  for (NodeId n = 0; n < order.size(); ++n) now[order[n]] = n;
  const std::vector<ValueId> value_now = graph.rearrange(order, std::vector<bool>(graph.constants.size(), true));
  for (PatternClaim& claim : claims) {
    for (NodeId& n : claim.nodes) n = now[n];
    for (auto& [part, node] : claim.parts) node = now[node];
    for (ValueId& v : claim.bound_constants) v = value_now[v];
  }
  note_fates(canonical, now);
  sort_by_nodes(claims);
}

}  // namespace fusec
