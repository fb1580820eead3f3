// The lists of names that nodes of a rewritten graph stand for.
#include "transforms/origins.h"

#include <doctest/doctest.h>

#include "ir/text.h"
#include "transforms/canonical_graph.h"

using namespace fusec;

TEST_CASE("lists of origins are joined in the order of the nodes, and copied") {
  const Graph graph = parse_graph_text(
      "model \"m\"\ninput x: float32[4]\na: float32[4] = relu(x)\nb: float32[4] = neg(a)\nc: float32[4] = "
      "exp(b)\nreturn c\n");
  using Lists = std::vector<std::vector<std::string>>;
  Origins origins(graph);
  CHECK(origins == Lists{{"a"}, {"b"}, {"c"}});
  CHECK(origins[1] == std::vector<std::string>{"b"});
  std::vector<std::string> dropped;
  origins.rearrange({1, kDropped, 1}, 3, [&](NodeId fate, std::string_view name) {
    CHECK(fate == kDropped);
    dropped.emplace_back(name);
  });
  CHECK(origins == Lists{{}, {"a", "c"}, {}});
  CHECK(dropped == std::vector<std::string>{"b"});
  origins.copy(1, 2);
  origins.rearrange({0, 0, 1}, 2, [](NodeId, std::string_view) {});
  CHECK(origins == Lists{{"a", "c"}, {"a", "c"}});
  CHECK(origins[0].size() == 2);
}
