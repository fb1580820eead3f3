#include "transforms/canonical_graph.h"

#include <iterator>

namespace fusec {

std::vector<std::vector<std::string>> as_given(const Graph& graph) {
  std::vector<std::vector<std::string>> stands_for;
  stands_for.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) stands_for.push_back({node.name});
  return stands_for;
}

void note_fates(CanonicalGraph& canonical, const std::vector<NodeId>& fates) {
  std::vector<std::vector<std::string>> stands_for(canonical.graph.nodes.size());
  for (NodeId n = 0; n < fates.size(); ++n) {
    std::vector<std::string>& now = fates[n] == kDropped  ? canonical.dropped
                                    : fates[n] == kFolded ? canonical.folded
                                                          : stands_for[fates[n]];
    std::vector<std::string>& before = canonical.stands_for[n];
    if (now.empty())
      now = std::move(before);
    else
      now.insert(now.end(), std::make_move_iterator(before.begin()), std::make_move_iterator(before.end()));
  }
  canonical.stands_for = std::move(stands_for);
  canonical.heirs.clear();
}

}  // namespace fusec
