#include "transforms/canonical_graph.h"

namespace fusec {

Origins as_given(const Graph& graph) {
  return Origins(graph);
}

void note_fates(CanonicalGraph& canonical, const std::vector<NodeId>& fates) {
  canonical.stands_for.rearrange(fates, canonical.graph.nodes.size(), [&](NodeId fate, std::string_view name) {
    (fate == kDropped ? canonical.dropped : canonical.folded).emplace_back(name);
  });
  canonical.heirs.clear();
}

}  // namespace fusec
