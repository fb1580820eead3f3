#include "partition_families.h"

#include <array>
#include <random>
#include <string>

namespace fusec::bench {
namespace {

class Maker {
 public:
  Maker() : type_(TensorType{DType::kFloat32, {4, 4}}) { graph.name = "bench"; }

  ValueId input(const char* input_name) { return graph.add_input(input_name, type_.tensor); }
  ValueId add(std::string_view op, std::vector<ValueId> operands) {
    Node node;
    node.name = "n" + std::to_string(graph.nodes.size());
    node.op = graph.op(op);
    node.inputs = std::move(operands);
    return append(std::move(node));
  }
  ValueId add(OpPattern kind, std::vector<ValueId> operands) {
    Node node;
    node.name = "n" + std::to_string(graph.nodes.size());
    node.op = graph.op(std::string("custom.") + "ebirmto"[static_cast<std::size_t>(kind)]);
    node.inputs = std::move(operands);
    node.pattern = kind;
    return append(std::move(node));
  }

  Graph graph;

 private:
  ValueId append(Node node) {
    std::string output = node.name;
    const NodeId n = graph.add_node(std::move(node), {type_}, {std::move(output)});
    return graph.nodes[n].first_output;
  }
  ValueType type_;
};

Graph tower(std::uint32_t nodes) {
  Maker m;
  ValueId x = m.input("x");
  const ValueId weight = m.input("w"), bias = m.input("b");
  while (m.graph.nodes.size() + 4 <= nodes) {
    const ValueId h = m.add("relu", {m.add("add", {m.add("matmul", {x, weight}), bias})});
    x = m.add("add", {h, x});
  }
  m.graph.outputs = {x};
  return std::move(m.graph);
}

Graph chain(std::uint32_t nodes) {
  Maker m;
  ValueId x = m.input("x");
  constexpr std::array<std::string_view, 4> kOps = {"relu", "sigmoid", "tanh", "neg"};
  while (m.graph.nodes.size() < nodes) x = m.add(kOps[m.graph.nodes.size() % kOps.size()], {x});
  m.graph.outputs = {x};
  return std::move(m.graph);
}

OpPattern mixed_kind(std::mt19937& random) {
  constexpr std::array<OpPattern, 11> kMix = {OpPattern::kElemwise,   OpPattern::kElemwise,       OpPattern::kElemwise,
                                              OpPattern::kElemwise,   OpPattern::kElemwise,       OpPattern::kBroadcast,
                                              OpPattern::kBroadcast,  OpPattern::kInjective,      OpPattern::kInjective,
                                              OpPattern::kCommReduce, OpPattern::kOutEwiseFusable};
  return kMix[random() % kMix.size()];
}

Graph layered(std::uint32_t nodes, std::uint32_t width, bool mixed, bool join) {
  Maker m;
  std::mt19937 random(1);
  std::vector<ValueId> last(width, m.input("x"));
  while (m.graph.nodes.size() + width <= nodes) {
    std::vector<ValueId> layer;
    for (std::uint32_t i = 0; i < width; ++i) {
      const OpPattern kind = mixed ? mixed_kind(random) : OpPattern::kElemwise;
      layer.push_back(m.add(kind, {join ? last[i] : last[random() % width], last[random() % width]}));
    }
    last = std::move(layer);
  }
  if (join) {
    m.graph.outputs = {m.add(OpPattern::kElemwise, last)};
    return std::move(m.graph);
  }
  const Uses uses = uses_of(m.graph);
  for (const Node& node : m.graph.nodes) {
    if (uses.of(node.first_output).empty()) m.graph.outputs.push_back(node.first_output);
  }
  return std::move(m.graph);
}

Graph skips(std::uint32_t nodes) {
  Maker m;
  std::vector<ValueId> values{m.input("x")};
  for (std::uint32_t i = 0; i < nodes; ++i) {
    if (i <= nodes / 2) {
      values.push_back(m.add(i % 3 == 0 ? "matmul" : "relu",
                             i % 3 == 0 ? std::vector{values.back(), values.back()} : std::vector{values.back()}));
    } else {
      values.push_back(m.add("add", {values.back(), values[nodes - i]}));
    }
  }
  m.graph.outputs = {values.back()};
  return std::move(m.graph);
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {"tower", tower},
      {"chain", chain},
      {"layered", [](std::uint32_t n) { return layered(n, 10, true, true); }},
      {"layered_ew", [](std::uint32_t n) { return layered(n, 10, false, true); }},
      {"layered_outs", [](std::uint32_t n) { return layered(n, 10, true, false); }},
      {"skips", skips},
      {"wide", [](std::uint32_t n) { return layered(n, 1000, false, true); }},
  };
  return all;
}

}  // namespace fusec::bench
