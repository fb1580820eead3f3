// Which values are rounded to their 16 bits since codes are made of them: in the kernel that makes the codes, and in
// others, behind values that are stored wide.
#include "analysis/lowering/feeds_quantization.h"

#include <doctest/doctest.h>

#include "ir/text.h"
#include "schedule/lowering/lower_group.h"

namespace fusec::test {
namespace {

Graph marked(const char* text) {
  Graph graph = parse_graph_text(text);
  mark_feeds_quantization(graph);
  return graph;
}

bool leads(const Graph& graph, const char* node) {
  return graph.nodes[graph.find_node(node)].feeds_quantization;
}

// Whether the kernel of these nodes, which stores the result of the last, rounds what it computes on its way.
bool rounds(const Graph& graph, std::vector<NodeId> nodes) {
  const std::vector<LoweredUnit> units = lower_group(graph, nodes, {graph.nodes[nodes.back()].first_output});
  REQUIRE(units.size() == 1);
  const ExprPool& pool = units[0].kernel.pool;
  for (const ExprId id : reachable(pool, roots_of(units[0].kernel)))
    if (pool[id].op == ExprOp::kRound && bits(pool[id].dtype) == 16 && pool[pool[id].args[0]].op != ExprOp::kConstant)
      return true;
  return false;
}

constexpr const char* kCodes = R"(model "m"
input x: bfloat16[8, 8]
input y: float32[8, 8]
a: bfloat16[8, 8] = add(x, x)
b: bfloat16[8, 8] = relu(a)
w: float32[8, 8] = cast(b, dtype="float32")
d: float32[8, 8] = mul(w, y)
r: float32[8, 8] = round(d)
c: int8[8, 8] = cast(r, dtype="int8")
i: float32[8, 8] = cast(c, dtype="float32")
z: float32[8, 8] = exp(w)
return i, z
)";

}  // namespace

TEST_CASE("what argmax looks at is rounded as the graph says") {
  const Graph graph = marked(R"(model "m"
input x: bfloat16[8, 64]
y: bfloat16[8, 64] = softmax(x, dim=1)
a: int64[8] = argmax(y, dim=1)
return a
)");
  CHECK(rounds(graph, {graph.find_node("y"), graph.find_node("a")}));
}

TEST_CASE(
    "what is compared, floored or taken for an integer is rounded as the graph says, what is only selected is not") {
  const auto of = [](const char* last) {
    const std::string text = std::string(R"(model "m"
input x: bfloat16[8, 64]
input y: bfloat16[8, 64]
input m: bool[8, 64]
a: bfloat16[8, 64] = mul(x, y)
z: )") + last + "\nreturn z\n";
    const Graph graph = marked(text.c_str());
    return rounds(graph, {graph.find_node("a"), graph.find_node("z")});
  };
  CHECK(of("bool[8, 64] = ge(a, x)"));
  CHECK(of("bool[8, 64] = isinf(a)"));
  CHECK(of("bfloat16[8, 64] = floor(a)"));
  CHECK(of("bfloat16[8, 64] = div(a, x, rounding_mode=\"floor\")"));
  CHECK(of("int32[8, 64] = cast(a, dtype=\"int32\")"));
  CHECK(of("float8_e4m3fn[8, 64] = cast(a, dtype=\"float8_e4m3fn\")"));
  CHECK_FALSE(of("bool[8, 64] = ge(a, 0.0)"));
  CHECK_FALSE(of("bfloat16[8, 64] = div(a, x)"));
  CHECK_FALSE(of("bfloat16[8, 64] = where(m, a, x)"));
  CHECK_FALSE(of("float32[8, 64] = cast(a, dtype=\"float32\")"));
}

TEST_CASE("codes: what leads to them does so through floats of more than 16 bits, and no further than they") {
  const Graph graph = marked(kCodes);
  CHECK(leads(graph, "w"));
  CHECK(leads(graph, "d"));
  CHECK(leads(graph, "r"));
  for (const char* not_before : {"a", "b", "c", "i", "z"}) {
    CAPTURE(not_before);
    CHECK_FALSE(leads(graph, not_before));
  }
}

TEST_CASE("codes: 16-bit values are rounded where what is stored wide leads to codes elsewhere") {
  const Graph graph = marked(kCodes), unmarked = parse_graph_text(kCodes);
  const auto until = [&](const char* last) {
    std::vector<NodeId> nodes{graph.find_node("a"), graph.find_node("b"), graph.find_node("w")};
    if (nodes.back() != graph.find_node(last)) nodes.push_back(graph.find_node(last));
    return nodes;
  };
  CHECK(rounds(graph, until("w")));
  CHECK_FALSE(rounds(unmarked, until("w")));
}

}  // namespace fusec::test
