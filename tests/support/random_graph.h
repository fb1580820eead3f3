// Random graphs for property tests: custom ops of every pattern kind, several results, repeated operands, tuples, dead
// nodes, outputs in the middle, nodes kept apart. The same seed makes the same graph on every machine (the standard's
// distributions do not, so there are none here).
#pragma once

#include <array>
#include <random>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fusec::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(engine_() % n); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  // An index into `weights`, as likely as its weight.
  std::size_t weighted(const std::array<std::uint32_t, 7>& weights) {
    std::uint32_t sum = 0;
    for (const std::uint32_t w : weights) sum += w;
    std::uint32_t at = below(sum);
    for (std::size_t i = 0;; ++i) {
      if (at < weights[i]) return i;
      at -= weights[i];
    }
  }

 private:
  std::mt19937_64 engine_;
};

struct AnnotatedGraph {
  Graph graph;
  std::vector<OpPattern> kinds;
};

// Appends a custom node "n<number>" of this kind, with so many results; the value of its first result.
inline ValueId add_custom(AnnotatedGraph& g, OpPattern kind, std::vector<ValueId> operands, std::uint32_t results = 1) {
  const ValueType type = TensorType{DType::kFloat32, {4}};
  Node node;
  node.name = "n" + std::to_string(g.graph.nodes.size());
  node.op = g.graph.op("custom." + std::string(name(kind)));
  node.inputs = std::move(operands);
  node.pattern = kind;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < results; ++i) {
    names.push_back(results == 1 ? node.name : node.name + "." + std::to_string(i));
  }
  g.kinds.push_back(kind);
  const NodeId n = g.graph.add_node(std::move(node), std::vector<ValueType>(results, type), std::move(names));
  return g.graph.nodes[n].first_output;
}

struct RandomGraphOptions {
  std::uint32_t max_nodes = 40;
  bool fusion_disabled = false;
};

inline AnnotatedGraph random_graph(Random& random, const RandomGraphOptions& options = {}) {
  constexpr std::array<std::array<std::uint32_t, 7>, 5> kMixes = {{{6, 2, 2, 1, 1, 1, 1},
                                                                   {20, 2, 2, 1, 1, 0, 0},
                                                                   {5, 2, 4, 0, 1, 3, 1},
                                                                   {1, 0, 0, 0, 0, 0, 0},
                                                                   {4, 0, 6, 1, 1, 2, 0}}};
  AnnotatedGraph g;
  std::vector<ValueId> values;
  for (int i = 0; i < 2; ++i) {
    values.push_back(g.graph.add_input("x" + std::to_string(i), TensorType{DType::kFloat32, {4}}));
  }
  const std::uint32_t nodes = 1 + random.below(options.max_nodes);
  const std::uint32_t reach = 2 + random.below(10);  // how far back operands lie
  const auto& mix = kMixes[random.below(kMixes.size())];
  const std::uint32_t several = random.chance(50) ? 15 : 0;
  std::vector<std::uint8_t> used;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    used.resize(g.graph.value_count(), 0);
    const std::uint32_t from = values.size() > reach ? static_cast<std::uint32_t>(values.size()) - reach : 0;
    std::vector<ValueId> operands;
    for (std::uint32_t k = 1 + random.below(3); k-- > 0;) {
      ValueId pick = values[from + random.below(static_cast<std::uint32_t>(values.size()) - from)];
      for (std::size_t v = from; v < values.size() && random.chance(60); ++v) {
        if (!used[values[v]]) pick = values[v];
      }
      operands.push_back(pick);
      used[pick] = 1;
    }
    const std::uint32_t results = random.chance(several) ? 2 + random.below(3) : 1;
    const ValueId first = add_custom(g, static_cast<OpPattern>(random.weighted(mix)), std::move(operands), results);
    for (std::uint32_t r = 0; r < results; ++r) values.push_back(first + r);
    if (options.fusion_disabled && random.chance(5)) g.graph.nodes.back().fuse = false;
  }
  used.resize(g.graph.value_count(), 0);
  std::vector<ValueId> loose;
  for (ValueId v = values[2]; v < g.graph.value_count(); ++v) {
    if (!used[v]) loose.push_back(v);
  }
  if (random.chance(60)) {
    g.graph.outputs = {add_custom(g, static_cast<OpPattern>(random.below(4)), std::move(loose))};
  } else {
    for (const ValueId v : loose) {
      if (random.chance(80)) g.graph.outputs.push_back(v);
    }
  }
  if (random.chance(40)) {
    for (ValueId v = values[2]; v < g.graph.value_count(); ++v) {
      if (random.chance(8)) g.graph.outputs.push_back(v);
    }
  }
  return g;
}

// Random layers, `width` nodes each, every node with two operands from the layer before; all values used. At the end
// one node that takes all of the last layer, or (join = false) the loose values as outputs.
inline AnnotatedGraph layered_graph(std::uint32_t nodes, std::uint32_t width, bool join, std::uint64_t seed) {
  constexpr std::array<std::uint32_t, 7> kMix = {5, 2, 2, 1, 1, 0, 0};
  Random random(seed);
  AnnotatedGraph g;
  std::vector<ValueId> last(width, g.graph.add_input("x", TensorType{DType::kFloat32, {4}}));
  while (g.graph.nodes.size() + width <= nodes) {
    std::vector<ValueId> layer;
    for (std::uint32_t i = 0; i < width; ++i) {
      const ValueId one = join ? last[i] : last[random.below(width)];
      layer.push_back(add_custom(g, static_cast<OpPattern>(random.weighted(kMix)), {one, last[random.below(width)]}));
    }
    last = std::move(layer);
  }
  if (join) {
    g.graph.outputs = {add_custom(g, OpPattern::kElemwise, last)};
  } else {
    const Uses uses = uses_of(g.graph);
    for (const Node& node : g.graph.nodes) {
      if (uses.of(node.first_output).empty()) g.graph.outputs.push_back(node.first_output);
    }
  }
  return g;
}

}  // namespace fusec::test
