#include "analysis/group_components.h"

#include <doctest/doctest.h>

#include "ir/text.h"

namespace fusec::test {

TEST_CASE("group parts: as far as data flows between the nodes, not through what they read") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[4]
input z: float32[4]
a: float32[4] = relu(x)
b: float32[4] = tanh(x)
c: float32[4] = add(a, z)
d: float32[4] = add(b, z)
e: float32[4] = add(c, d)
return c, e
)");
  const std::vector<NodeId> apart = {0, 1, 2, 3};
  CHECK(connected_components(graph, apart) == std::vector<std::vector<NodeId>>{{0, 2}, {1, 3}});
  const std::vector<NodeId> all = {0, 1, 2, 3, 4};
  CHECK(connected_components(graph, all) == std::vector<std::vector<NodeId>>{all});
  CHECK(largest_component(graph, apart) == 2);
  CHECK(largest_component(graph, {}) == 0);
}

}  // namespace fusec::test
