// Reads just enough of a model file to partition it by the patterns that it states: for tests that need the
// partitioner alone, without reader, op table and annotation.
#pragma once

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "analysis/forward_graph.h"
#include "ir/digraph.h"

namespace fusec::test {

struct NamedForwardGraph {
  ForwardGraph graph;
  std::vector<std::string> node_of;  // the node that each vertex stands for
  std::vector<bool> is_item;
};

inline nlohmann::json load_json(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  return nlohmann::json::parse(in);
}

// Positions of the nodes in binding order: among those that are ready, always the earliest in the file.
inline std::vector<std::uint32_t> binding_order(const std::vector<std::vector<std::string>>& results,
                                                const std::vector<std::vector<std::string>>& operands) {
  std::map<std::string, std::uint32_t> producer;
  for (std::uint32_t i = 0; i < results.size(); ++i) {
    for (const std::string& r : results[i]) producer[r] = i;
  }
  return topological_order(digraph_of(results.size(), [&](auto edge) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      for (const std::string& operand : operands[i])
        if (producer.contains(operand)) edge(producer[operand], static_cast<std::uint32_t>(i));
  }));
}

inline NamedForwardGraph load_forward_graph(const nlohmann::json& model) {
  const auto& nodes = model.at("nodes");
  std::vector<std::vector<std::string>> results, operands;
  std::set<std::string> used;
  const std::vector<std::string> outputs = model.at("outputs");
  used.insert(outputs.begin(), outputs.end());
  for (const auto& node : nodes) {
    results.emplace_back();
    operands.emplace_back();
    if (!node.contains("outputs")) results.back().push_back(node.at("name"));
    for (const auto& o : node.value("outputs", nlohmann::json::array())) {
      results.back().push_back(o.is_string() ? o : o.at("name"));
    }
    for (const auto& operand : node.at("inputs")) {
      if (operand.is_string()) operands.back().push_back(operand);
    }
    used.insert(operands.back().begin(), operands.back().end());
  }
  NamedForwardGraph named;
  ForwardGraphBuilder builder;
  std::map<std::string, Vertex> vertex_of;
  const auto add = [&](OpPattern pattern, const std::string& name, bool item) {
    named.node_of.push_back(name);
    named.is_item.push_back(item);
    return builder.add(pattern);
  };
  for (const std::size_t i : binding_order(results, operands)) {
    const Vertex v =
        add(parse_op_pattern(nodes[i].at("pattern").get<std::string>()).value(), nodes[i].at("name"), false);
    for (const std::string& operand : operands[i]) {
      if (vertex_of.contains(operand)) builder.add_operand(vertex_of.at(operand));
    }
    if (results[i].size() == 1) vertex_of[results[i][0]] = v;
    for (const std::string& result : results[i]) {
      if (results[i].size() == 1 || !used.contains(result)) continue;
      vertex_of[result] = add(OpPattern::kInjective, nodes[i].at("name"), true);
      builder.add_operand(v);
    }
  }
  for (const std::string& output : outputs) {
    if (vertex_of.contains(output)) builder.mark_external(vertex_of.at(output));
  }
  named.graph = std::move(builder).finish();
  return named;
}

}  // namespace fusec::test
