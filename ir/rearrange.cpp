// Graph::rearrange: removes or reorders nodes in place. Nodes and values move to new positions, and the name tables are
// renumbered; nothing is built again.
#include <bit>
#include <map>
#include <tuple>

#include "ir/graph.h"

namespace fusec {

std::vector<ValueId> Graph::rearrange(std::span<const NodeId> order, const std::vector<bool>& kept_constants) {
  LargeVector<Value> values;
  values.reserve(values_.size());
  std::vector<Scalar> numbers;
  std::vector<Dim> dims;
  std::vector<ValueId> now(values_.size(), kNone);
  const auto keep = [&](ValueId old, std::size_t index) {
    now[old] = static_cast<ValueId>(values.size());
    values.push_back(std::move(values_[old]));
    values.back().index = static_cast<std::uint32_t>(index);
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    keep(inputs[i], i);
    inputs[i] = now[inputs[i]];
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    if (!kept_constants[i]) continue;
    keep(constants[i].value, kept);
    constants[i].value = now[constants[i].value];
    if (kept != i) constants[kept] = std::move(constants[i]);
    ++kept;
  }
  constants.resize(kept);
  // Equal numbers become one value, so that duplicate nodes have equal operands.
  std::map<std::tuple<Category, std::int64_t, std::uint64_t>, ValueId> by_number;
  const auto operand = [&](ValueId old) {
    if (old == kNone || now[old] != kNone) return old == kNone ? kNone : now[old];
    const std::uint32_t index = values_[old].index;
    if (values_[old].kind == Value::Kind::kDim) {
      keep(old, dims.size());
      dims.push_back(std::move(dims_[index]));
      return now[old];
    }
    const Scalar number = numbers_[index];
    const auto [it, fresh] =
        by_number.try_emplace({number.category, number.integer, std::bit_cast<std::uint64_t>(number.real)},
                              static_cast<ValueId>(values.size()));
    if (fresh) {
      keep(old, numbers.size());
      numbers.push_back(number);
    }
    return now[old] = it->second;
  };
  LargeVector<Node> kept_nodes;
  kept_nodes.reserve(order.size());
  std::vector<NodeId> node_now(nodes.size(), kNone);
  for (const NodeId n : order) {
    node_now[n] = static_cast<NodeId>(kept_nodes.size());
    Node& node = kept_nodes.emplace_back(std::move(nodes[n]));
    for (ValueId& v : node.inputs) v = operand(v);
    const ValueId first = node.first_output;
    node.first_output = static_cast<ValueId>(values.size());
    for (std::uint32_t o = 0; o < node.output_count; ++o) {
      keep(first + o, o);
      values.back().producer = node_now[n];
    }
  }
  for (ValueId& v : outputs) v = now[v];
  for (Alias& alias : aliases) alias = {now[alias.output], now[alias.input]};
  values_ = std::move(values);
  numbers_ = std::move(numbers);
  dims_ = std::move(dims);
  nodes = std::move(kept_nodes);
  value_names_.renumber(now);
  node_names_.renumber(node_now);
  return now;
}

}  // namespace fusec
