#include "codegen/schedules/special.h"

#include "ir/error.h"

namespace fusec {

std::vector<KernelSource> special(const Graph& graph, NodeId node, const Target&) {
  throw InternalError("no kernel for " + graph.nodes[node].op->name);
}

}  // namespace fusec
