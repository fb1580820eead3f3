#include "transforms/patterns/explain_patterns.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/spelling.h"
#include "transforms/patterns/near_misses.h"

namespace fusec {
namespace {

std::string sentence_of(const Graph& graph, const PatternClaim& claim) {
  std::vector<std::string> names;
  for (const NodeId n : claim.nodes) names.push_back(in_quotes(graph.nodes[n].name));
  std::string text = fmt::format("{} claimed {}", claim.pattern, fmt::join(names, ", "));
  for (std::size_t i = 0; i < claim.attributes.size(); ++i)
    text += fmt::format("{}{} = {}", i == 0 ? " (" : ", ", claim.attributes[i].first, claim.attributes[i].second);
  return claim.attributes.empty() ? text : text + ")";
}

}  // namespace

std::vector<std::string> pattern_sentences(const Graph& graph, const FusionPlan& plan, const PatternList& patterns,
                                           const std::vector<NodeId>& nodes) {
  std::vector<std::string> sentences;
  for (const PatternClaim& claim : plan.claims)
    if (std::ranges::any_of(nodes, [&](NodeId n) { return std::ranges::binary_search(claim.nodes, n); }))
      sentences.push_back(sentence_of(graph, claim));
  for (const NotClaimed& miss : near_misses(graph, patterns, plan.claims, nodes,
                                            {.max_fused_ops = plan.max_fused_ops, .max_args = plan.max_args}))
    sentences.push_back(
        fmt::format("{} does not match at {}: {}", miss.pattern, in_quotes(graph.nodes[miss.root].name), miss.why));
  return sentences;
}

}  // namespace fusec
