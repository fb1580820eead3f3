#include "ir/tuple_field.h"

#include <vector>

namespace fusec {

ValueId resolve_tuple(const Graph& graph, ValueId value) {
  // get_item(tuple(a, b, ...), i) is the i-th operand; tuples may hold tuples.
  std::vector<std::int64_t> path;
  ValueId at = value;
  while (graph.value(at).kind == Value::Kind::kResult) {
    const Node& node = graph.nodes[graph.value(at).producer];
    if (node.op->special != Special::kTuple) break;
    if (node.op->name == "get_item") {
      path.push_back(graph.attributes(node).integer("index"));
      at = node.inputs.at(0);
    } else {
      if (path.empty()) break;
      std::int64_t i = path.back();
      if (i < 0) i += static_cast<std::int64_t>(node.inputs.size());
      path.pop_back();
      at = node.inputs.at(static_cast<std::size_t>(i));
    }
  }
  return path.empty() ? at : value;
}

}  // namespace fusec
