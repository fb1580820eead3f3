#include "schedule/lowering/node_work.h"

#include <doctest/doctest.h>

#include "ir/text.h"

using namespace fusec;

namespace {

// The operations of the graph's last node.
std::int64_t flops_of(const std::string& text) {
  const Graph graph = parse_graph_text("model \"m\"\n" + text);
  NodeWork work(graph);
  return work.flops(static_cast<NodeId>(graph.nodes.size() - 1));
}

const std::string kInputs =
    "input x: float32[6, 16]\ninput b: bfloat16[6, 16]\nconstant w: float32[24, 16]\nconstant v: float32[24]\n"
    "input q: int8[6, 16]\nconstant k: int8[24, 16]\nconstant s: float32[24]\nconstant t: float32[1]\n";

}  // namespace

TEST_CASE("a product is a multiplication and an addition for every place of its sum") {
  CHECK(flops_of(kInputs + "y: float32[6, 24] = linear(x, w)\nreturn y\n") == 2 * 6 * 24 * 16);
  CHECK(flops_of(kInputs + "y: float32[6, 24] = linear(x, w, v)\nreturn y\n") == 2 * 6 * 24 * 16 + 6 * 24);
  CHECK(flops_of("input a: float16[3, 5, 7]\ninput b: float16[3, 7, 2]\ny: float16[3, 5, 2] = bmm(a, b)\nreturn y\n") ==
        2 * 3 * 5 * 7 * 2);
  CHECK(flops_of("input i: float32[2, 3, 8, 8]\nconstant k: float32[4, 3, 3, 3]\n"
                 "y: float32[2, 4, 6, 6] = conv2d(i, k)\nreturn y\n") == 2 * (2 * 4 * 6 * 6) * (3 * 3 * 3));
  // An element of the input meets each weight once, whatever the stride.
  CHECK(flops_of("input i: float32[2, 3, 8, 8]\nconstant k: float32[3, 4, 2, 2]\n"
                 "y: float32[2, 4, 16, 16] = conv_transpose2d(i, k, stride=[2, 2])\nreturn y\n") ==
        2 * (2 * 3 * 8 * 8) * (4 * 2 * 2));
  // Which matrix a row takes is index arithmetic.
  CHECK(flops_of("input a: float16[32, 16]\ninput o: int32[4]\nconstant k: float16[4, 16, 8]\n"
                 "y: float16[32, 8] = grouped_matmul(a, k, o)\nreturn y\n") == 2 * 32 * 16 * 8);
}

TEST_CASE("element by element, sums, and what only moves") {
  CHECK(flops_of(kInputs + "y: float32[6, 16] = silu(x)\nreturn y\n") == 3 * 6 * 16);
  CHECK(flops_of(kInputs + "y: bfloat16[6, 16] = silu(b)\nreturn y\n") == 3 * 6 * 16);
  CHECK(flops_of(kInputs + "y: float32[6, 16] = mul(x, x)\nreturn y\n") == 6 * 16);
  CHECK(flops_of(kInputs + "y: float32[6, 16] = relu(x)\nreturn y\n") == 6 * 16);
  CHECK(flops_of(kInputs + "y: float32[6] = sum(x, dim=[1])\nreturn y\n") == 6 * 16);
  CHECK(flops_of(kInputs + "y: float32[96] = reshape(x, shape=[96])\nreturn y\n") == 0);
  CHECK(flops_of(kInputs + "y: float32[16, 6] = permute(x, dims=[1, 0])\nreturn y\n") == 0);
  CHECK(flops_of(kInputs + "y: float16[6, 16] = cast(x, dtype=\"float16\")\nreturn y\n") == 0);
  CHECK(flops_of(kInputs + "y: float32[6, 8] = slice(x, dim=1, start=3, end=11)\nreturn y\n") == 0);
}

TEST_CASE("symbols stand at their hints") {
  CHECK(flops_of("symbol n min=1 max=4096 multiple_of=1 hint=10\ninput x: float32[n, 16]\nconstant w: float32[24, 16]\n"
                 "y: float32[n, 24] = linear(x, w)\nreturn y\n") == 2 * 10 * 24 * 16);
}
