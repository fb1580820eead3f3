#include "repeat_model.h"

#include <string>
#include <vector>

namespace fusec::bench {

Graph repeat_model(const Graph& block, std::uint32_t nodes) {
  Graph graph = block.emptied();
  std::vector<ValueId> now(block.value_count(), kNone);
  for (const ValueId v : block.inputs) now[v] = graph.add_input(block.value(v).name, block.tensor(v));
  for (ValueId v = 0; v < block.value_count(); ++v) {
    if (block.value(v).kind == Value::Kind::kNumber) now[v] = graph.add_number(block.number(v));
    if (block.value(v).kind == Value::Kind::kDim) now[v] = graph.add_dim(block.dim(v));
  }
  for (std::size_t layer = 0; graph.nodes.size() < nodes; ++layer) {
    const std::string suffix = "/" + std::to_string(layer);
    for (const Constant& constant : block.constants) {
      now[constant.value] = graph.add_constant(block.value(constant.value).name + suffix, block.tensor(constant.value));
      const ValueId v = graph.constants.back().value;
      graph.constants.back() = constant;
      graph.constants.back().value = v;
    }
    for (const Node& old : block.nodes) {
      Node node = old;
      node.name += suffix;
      for (ValueId& v : node.inputs)
        if (v != kNone) v = now[v];
      std::vector<std::string> names;
      for (std::uint32_t o = 0; o < old.output_count; ++o)
        names.push_back(block.value(old.first_output + o).name + suffix);
      const NodeId n = graph.add_node(std::move(node), block.result_types(old), std::move(names));
      for (std::uint32_t o = 0; o < old.output_count; ++o) now[old.first_output + o] = graph.nodes[n].first_output + o;
    }
    now[block.inputs[0]] = now[block.outputs[0]];
  }
  graph.outputs = {now[block.outputs[0]]};
  return graph;
}

}  // namespace fusec::bench
