// Roots at which a pattern is known not to match: as long as nothing that was looked at changes.
#include "transforms/patterns/settled_roots.h"

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "ir/text.h"

using namespace fusec;

namespace {

// y0 = relu(x), y1 = relu(y0), ... y9
Graph chain_of_ten() {
  std::string text = "model \"m\"\ninput x: float32[4]\n";
  for (int i = 0; i < 10; ++i)
    text += "y" + std::to_string(i) + ": float32[4] = relu(" + (i == 0 ? "x" : "y" + std::to_string(i - 1)) + ")\n";
  return parse_graph_text(text + "return y9\n");
}

std::vector<NodeId> all_nodes(const Graph& graph) {
  std::vector<NodeId> order(graph.nodes.size());
  std::iota(order.begin(), order.end(), NodeId{0});
  return order;
}

}  // namespace

TEST_CASE("a root is settled until what was looked at is touched") {
  const Graph graph = chain_of_ten();
  const std::vector<NodeId> far = {0};
  SettledRoots settled(1);
  settled.begin_round(graph.nodes.size());
  CHECK_FALSE(settled.is_settled(0, 8));
  settled.note(0, 8, 2, {});
  settled.note(0, 5, 1, {});
  settled.note(0, 3, 1, far);
  settled.end_round(graph, all_nodes(graph));

  settled.begin_round(graph.nodes.size());
  settled.touch(7);  // looked at from 8, not from 5
  CHECK_FALSE(settled.is_settled(0, 8));
  CHECK_FALSE(settled.is_settled(0, 6));  // nobody noted it
  CHECK(settled.is_settled(0, 5));
  CHECK(settled.is_settled(0, 3));
  settled.touch(0);  // what 3 looked at far away, behind its turn
  settled.end_round(graph, all_nodes(graph));

  settled.begin_round(graph.nodes.size());
  CHECK_FALSE(settled.is_settled(0, 8));
  CHECK(settled.is_settled(0, 5));
  CHECK_FALSE(settled.is_settled(0, 3));
}

TEST_CASE("settled roots move with the nodes, and go with what they read") {
  const Graph graph = chain_of_ten();
  SettledRoots settled(2);
  settled.begin_round(graph.nodes.size());
  settled.note(0, 8, 1, {});
  settled.note(1, 3, 1, {});
  // Node 4 goes: 3, which made what it read, is read by others now; 8 stands a place before.
  std::vector<NodeId> order = all_nodes(graph);
  order.erase(order.begin() + 4);
  settled.end_round(graph, order);
  settled.begin_round(order.size());
  CHECK(settled.is_settled(0, 7));
  CHECK_FALSE(settled.is_settled(1, 3));
}
