#include <doctest/doctest.h>

#include "ir/graph.h"
#include "ir/name_index.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace fusec::test {

TEST_CASE("rearrange: nodes change their places, and are found by name there") {
  Graph graph = parse_graph_text(R"(model "m"
input x: float32[4]
a: float32[4] = mul(x, 0.5)
dead: float32[4] = add(x, 3.0)
b: float32[4] = mul(x, 0.5)
y: float32[4] = sub(b, a)
return y
)");
  const NodeId order[] = {graph.find_node("b"), graph.find_node("a"), graph.find_node("y")};
  const ValueId b = graph.find_value("b"), dead = graph.find_value("dead");
  const std::vector<ValueId> now = graph.rearrange(order, {});
  verify(graph, "rearrange");
  CHECK(graph.nodes.size() == 3);
  CHECK(graph.find_node("b") == 0);
  CHECK(graph.find_node("y") == 2);
  CHECK(graph.find_node("dead") == kNone);
  CHECK(graph.find_value("dead") == kNone);
  CHECK(now[b] == graph.find_value("b"));
  CHECK(now[dead] == kNone);
  // Equal numbers are one value, 3.0 is gone.
  CHECK(graph.nodes[0].inputs[1] == graph.nodes[1].inputs[1]);
  CHECK(graph.value_count() == 5);
  // The name is free again.
  Node node = graph.nodes[2];
  node.name = "dead";
  graph.add_node(node, {graph.type(graph.find_value("y"))}, {"dead"});
  CHECK(graph.find_node("dead") == 3);
}

TEST_CASE("name index: as many names as come, and each once") {
  std::vector<std::string> names;
  for (int i = 0; i < 5000; ++i) names.push_back("node_" + std::to_string(i));
  const auto name_of = [&](std::uint32_t i) -> const std::string& { return names[i]; };
  NameIndex index;
  for (std::uint32_t i = 0; i < names.size(); ++i) CHECK(index.add(names[i], i, name_of));
  for (std::uint32_t i = 0; i < names.size(); ++i) CHECK(index.find(names[i], name_of) == i);
  CHECK(!index.add(names[17], 17, name_of));
  CHECK(index.find("node_5000", name_of) == NameIndex::kAbsent);
  // All odd ones go, the others are half as large.
  std::vector<std::uint32_t> now;
  for (std::uint32_t i = 0; i < names.size(); ++i) now.push_back(i % 2 == 0 ? i / 2 : NameIndex::kAbsent);
  index.renumber(now);
  const auto name_now = [&](std::uint32_t i) -> const std::string& { return names[2 * i]; };
  CHECK(index.find("node_16", name_now) == 8);
  CHECK(index.find("node_17", name_now) == NameIndex::kAbsent);
}

}  // namespace fusec::test
