#include "analysis/group_signature.h"

#include <doctest/doctest.h>

#include <span>

#include "ir/text.h"

namespace fusec::test {

TEST_CASE("group signature: equal layers have one key, and their values correspond") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[8, 4]
input w: float32[4, 4]
input u: float32[4, 4]
a: float32[8, 4] = linear(x, w)
b: float32[8, 4] = relu(a)
c: float32[8, 4] = linear(b, u)
d: float32[8, 4] = relu(c)
return d
)");
  const auto value = [&](NodeId n) { return graph.nodes[n].first_output; };
  GroupSignatures signatures(graph);
  const GroupParts first{{0, 1}, {}}, second{{2, 3}, {}};
  const GroupKey key = signatures.of(first.nodes, std::vector{value(1)});
  const GroupParts from{first.nodes, signatures.operands()};
  CHECK(signatures.of(second.nodes, std::vector{value(3)}) == key);
  const GroupParts to{second.nodes, signatures.operands()};
  CHECK(to.operands == std::vector{value(1), graph.nodes[2].inputs[1]});

  const GroupRenaming renaming(graph, from, to);
  CHECK(renaming.node(1) == 3);
  CHECK(renaming.value(value(0)) == value(2));
  CHECK(renaming.value(graph.nodes[0].inputs[0]) == value(1));
  CHECK(renaming.value(graph.nodes[0].inputs[1]) == graph.nodes[2].inputs[1]);
}

TEST_CASE("group signature: what lowering sees tells groups apart") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[8, 4]
input y: float32[8, 4]
a: float32[8, 4] = add(x, y)
b: float32[8, 4] = add(x, x)
c: float32[8, 4] = add(a, 1)
d: float32[8, 4] = add(a, 2)
e: float32[8] = sum(a, dim=1)
f: float32[4] = sum(a, dim=0)
return b, c, d, e, f
)");
  GroupSignatures signatures(graph);
  const auto key = [&](std::vector<NodeId> nodes, std::vector<ValueId> outputs) {
    return signatures.of(nodes, outputs);
  };
  const auto value = [&](NodeId n) { return graph.nodes[n].first_output; };
  CHECK(key({0}, {value(0)}) != key({1}, {value(1)}));                  // x + y, x + x
  CHECK(key({2}, {value(2)}) != key({3}, {value(3)}));                  // numbers
  CHECK(key({4}, {value(4)}) != key({5}, {value(5)}));                  // attributes
  CHECK(key({0, 2}, {value(2)}) != key({0, 2}, {value(0), value(2)}));  // what is needed outside
  CHECK(GroupSignatures(graph, 1).of(std::vector<NodeId>{0}, {}) == key({0}, {}));
}

// A view of a tuple's field is memory of what the tuple holds.
TEST_CASE("group signature: fields of tuples are told apart") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[8, 4]
input y: float32[8, 4]
t: (float32[8, 4], float32[8, 4]) = tuple(x, y)
a: float32[8, 4] = get_item(t, index=0)
b: float32[8, 4] = get_item(t, index=1)
c: float32[32] = reshape(a, shape=[32])
d: float32[32] = reshape(b, shape=[32])
return c, d
)");
  GroupSignatures signatures(graph);
  const auto key = [&](NodeId n) {
    return signatures.of(std::span(&n, 1), std::span(&graph.nodes[n].first_output, 1));
  };
  CHECK(key(3) != key(4));
}

}  // namespace fusec::test
