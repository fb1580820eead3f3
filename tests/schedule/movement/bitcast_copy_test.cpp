// What is moved and not computed with is moved as the bits that it is.
#include "schedule/movement/bitcast_copy.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "ir/text.h"
#include "schedule/lowering/lower_group.h"

namespace fusec::test {
namespace {

Kernel kernel_of(const std::string& text) {
  const Graph graph = parse_graph_text(text);
  std::vector<NodeId> nodes;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) nodes.push_back(n);
  std::vector<LoweredUnit> units = lower_group(graph, nodes, graph.outputs);
  REQUIRE(units.size() == 1);
  return std::move(units[0].kernel);
}

std::string moved_text(const std::string& text) {
  const Kernel moved = bitcast_copies(kernel_of(text));
  return std::string(name(moved.outputs[0].type.dtype)) + " " + to_string(moved.pool, moved.outputs[0].expr);
}

}  // namespace

TEST_CASE("moved bits: a padded transpose, with the bits of what it is padded with") {
  const std::string text = moved_text(R"(model "m"
input x: float16[4, 8]
t: float16[8, 4] = transpose(x, dim0=0, dim1=1)
y: float16[8, 6] = pad(t, pad=[2, 0], value=1.5)
return y
)");
  CHECK(text.starts_with("uint16 "));
  CHECK(text.find("15872") != std::string::npos);  // 0x3e00
}

TEST_CASE("moved bits: codes of 4 bits") {
  CHECK(moved_text(R"(model "m"
input x: float4_e2m1fn[4, 8]
y: float4_e2m1fn[8, 4] = transpose(x, dim0=0, dim1=1)
return y
)")
            .starts_with("uint4 "));
}

TEST_CASE("moved bits: one output of bytes beside one of float32") {
  const Kernel moved = bitcast_copies(kernel_of(R"(model "m"
input x: float8_e4m3fn[4, 8]
input z: float32[4, 8]
input i: int32[5]
y: float8_e4m3fn[5, 8] = index_select(x, i, dim=0)
w: float32[5, 8] = index_select(z, i, dim=0)
return y, w
)"));
  CHECK(moved.outputs[0].type.dtype == DType::kUInt8);
  CHECK(moved.outputs[1].type.dtype == DType::kFloat32);
}

TEST_CASE("moved bits: what is computed, asked for its value or looked up stays what it is") {
  for (const char* node : {"y: float16[8] = add(x, z)", "y: float16[8] = relu(x)",
                           "c: bool[8] = gt(x, 0)\ny: float16[8] = where(c, x, z)"}) {
    const std::string text =
        moved_text("model \"m\"\ninput x: float16[8]\ninput z: float16[8]\n" + std::string(node) + "\nreturn y\n");
    CHECK(text.starts_with("float16 "));
  }
}

TEST_CASE("moved bits: picked by a condition on something else") {
  CHECK(moved_text(R"(model "m"
input c: float16[8]
input x: float16[8]
input z: float16[8]
d: bool[8] = gt(c, 0)
y: float16[8] = where(d, x, z)
return y
)")
            .starts_with("uint16 "));
}

}  // namespace fusec::test
