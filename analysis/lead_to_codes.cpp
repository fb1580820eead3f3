#include "analysis/lead_to_codes.h"

#include "ir/type.h"

namespace fusec {

bool makes_codes(const Node& node) {
  const std::string& op = node.op->name;
  return op == "quantize" || op == "round" || op == "argmax" || op == "argmin";
}

void mark_what_leads_to_codes(Graph& graph) {
  for (auto n = static_cast<NodeId>(graph.nodes.size()); n-- > 0;) {
    Node& node = graph.nodes[n];
    if (!node.leads_to_codes && !makes_codes(node)) continue;
    for (const ValueId v : node.inputs) {
      if (v == kNone || graph.value(v).kind != Value::Kind::kResult || graph.type(v).is_tuple) continue;
      const DType dtype = graph.tensor(v).dtype;
      if (is_float(dtype) && bits(dtype) > 16) graph.nodes[graph.value(v).producer].leads_to_codes = true;
    }
  }
}

}  // namespace fusec
