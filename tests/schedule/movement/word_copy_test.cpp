// What neighbours of the last axis do together is moved as wider elements.
#include "schedule/movement/word_copy.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "ir/text.h"
#include "schedule/lowering/lower_group.h"

namespace fusec::test {
namespace {

// The words' dtype and expression; "" where they are moved one by one.
std::string words_text(const std::string& body, int widest = 64) {
  const Graph graph = parse_graph_text("model \"m\"\n" + body);
  std::vector<NodeId> nodes;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) nodes.push_back(n);
  const std::vector<LoweredUnit> units = lower_group(graph, nodes, graph.outputs);
  REQUIRE(units.size() == 1);
  const auto words = widen_copies(units[0].kernel, graph, widest);
  if (!words) return "";
  const KernelOutput& output = words->kernel.outputs[0];
  for (ValueId v = 0; v < words->values.size(); ++v)
    CHECK(words->graph.value(v).name == graph.value(words->values[v]).name);
  return to_string(output.type, graph.symbols) + " " + to_string(words->kernel.pool, output.expr);
}

}  // namespace

TEST_CASE("moved words: as wide as the innermost extent allows") {
  const auto permuted = [](const std::string& dtype, int extent) {
    return words_text("input x: " + dtype + "[4, 6, " + std::to_string(extent) + "]\ny: " + dtype + "[6, 4, " +
                      std::to_string(extent) + "] = permute(x, dims=[1, 0, 2])\nreturn y\n");
  };
  CHECK(permuted("int8", 8).starts_with("uint64[24] "));
  CHECK(permuted("bool", 12).starts_with("uint32[72] "));
  CHECK(permuted("float16", 6).starts_with("uint32[72] "));
  CHECK(permuted("float32", 2).starts_with("uint64[24] "));
  CHECK(permuted("uint4", 2).starts_with("uint8[24] "));
  CHECK(permuted("int8", 3).empty());
  CHECK(permuted("float64", 4).empty());
}

TEST_CASE("moved words: rolled, padded and concatenated by whole words") {
  CHECK(words_text(R"(input x: int4[4, 64]
y: int4[4, 64] = roll(x, shifts=[8], dims=[1])
return y
)")
            .starts_with("uint32[32] "));
  CHECK(words_text(R"(input x: int4[4, 64]
y: int4[4, 64] = roll(x, shifts=[3], dims=[1])
return y
)")
            .empty());
  const std::string padded = words_text(R"(input x: uint8[4, 8]
y: uint8[4, 16] = pad(x, pad=[4, 4], value=3)
return y
)");
  CHECK(padded.starts_with("uint32[16] "));
  CHECK(padded.find("50529027") != std::string::npos);  // 0x03030303
  CHECK(words_text(R"(input x: int8[4, 6]
input z: int8[4, 10]
y: int8[4, 16] = concat(x, z, dim=1)
return y
)")
            .starts_with("uint16[32] "));
}

TEST_CASE("moved words: what is computed, picked one by one or turned round is not") {
  for (const char* node :
       {"y: int8[4, 8] = relu(x)", "y: int8[4, 8] = flip(x, dims=[1])", "y: int8[8, 4] = permute(x, dims=[1, 0])",
        "y: int8[4, 8] = gather(x, i, dim=1)", "y: int8[4, 4] = slice(x, dim=1, start=0, end=8, step=2)"})
    CHECK(words_text("input x: int8[4, 8]\ninput i: int32[4, 8]\n" + std::string(node) + "\nreturn y\n").empty());
}

TEST_CASE("moved words: rows that are looked up are, and no wider than is asked for") {
  const std::string picked =
      "input x: int8[4, 8]\ninput i: int32[5]\ny: int8[5, 8] = index_select(x, i, dim=0)\nreturn y\n";
  CHECK(words_text(picked).starts_with("uint64[5] "));
  CHECK(words_text(picked, 32).starts_with("uint32[10] "));
}

}  // namespace fusec::test
