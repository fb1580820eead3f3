// Slices that a concat joins are axes where they lie evenly apart.
#include "schedule/movement/concat_slices.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ir/text.h"
#include "schedule/lowering/lower_group.h"

namespace fusec::test {
namespace {

// What is stored, over the new axes; "" where there are none.
std::string joined_text(const std::string& body) {
  const Graph graph = parse_graph_text("model \"m\"\n" + body);
  std::vector<NodeId> nodes;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) nodes.push_back(n);
  const std::vector<LoweredUnit> units = lower_group(graph, nodes, graph.outputs);
  REQUIRE(units.size() == 1);
  const auto joined = concat_slices_to_axes(units[0].kernel);
  return joined ? to_string(joined->pool, joined->outputs[0].expr) : "";
}

bool is_load(const std::string& text) {
  return !text.empty() && text.find("select") == std::string::npos;
}

}  // namespace

TEST_CASE("joined slices: as many axes as it takes") {
  const std::string x = "input x: float16[6, 8, 10]\n";
  const auto slice = [](const std::string& name, const std::string& of, int dim, int start, int end) {
    return name + ": float16[6, " + (dim == 1 ? "4, 10" : "4, 5") + "] = slice(" + of + ", dim=" + std::to_string(dim) +
           ", start=" + std::to_string(start) + ", end=" + std::to_string(end) + ", step=2)\n";
  };
  const std::string rows = slice("a", "x", 1, 0, 8) + slice("b", "x", 1, 1, 8);
  const std::string one_axis = joined_text(x + rows + "y: float16[12, 4, 10] = concat(a, b, dim=0)\nreturn y\n");
  CHECK_MESSAGE(is_load(one_axis), one_axis);
  const std::string columns =
      slice("c", "a", 2, 0, 10) + slice("d", "b", 2, 0, 10) + slice("e", "a", 2, 1, 10) + slice("f", "b", 2, 1, 10);
  const std::string two_axes =
      joined_text(x + rows + columns + "y: float16[24, 4, 5] = concat(c, d, e, f, dim=0)\nreturn y\n");
  CHECK_MESSAGE(is_load(two_axes), two_axes);
  // In an order that is no step's.
  CHECK(joined_text(x + rows + columns + "y: float16[24, 4, 5] = concat(c, f, e, d, dim=0)\nreturn y\n").empty());
}

TEST_CASE("joined slices: of one tensor, of equal extents, unchanged") {
  CHECK(joined_text(R"(input x: float16[6, 8]
input z: float16[6, 8]
y: float16[12, 8] = concat(x, z, dim=0)
return y
)")
            .empty());
  CHECK(joined_text(R"(input x: float16[6, 8]
a: float16[2, 8] = slice(x, dim=0, start=0, end=2)
y: float16[8, 8] = concat(a, x, dim=0)
return y
)")
            .empty());
  CHECK(joined_text(R"(input x: float16[6, 8]
a: float16[6, 8] = neg(x)
y: float16[12, 8] = concat(a, x, dim=0)
return y
)")
            .empty());
}

}  // namespace fusec::test
