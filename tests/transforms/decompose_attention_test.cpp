#include "transforms/decompose_attention.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "ir/text.h"
#include "ir/verify.h"
#include "support/canonicalized.h"

using namespace fusec;

namespace {

CanonicalGraph decomposed(const std::string& text) {
  CanonicalGraph c = canonical_of(text);
  TrialMemory memory;
  decompose_attention(c, memory);
  CHECK(first_problem(c.graph) == "");
  CHECK(c.stands_for.size() == c.graph.nodes.size());
  CHECK(c.dropped.empty());
  for (const auto& names : c.stands_for)
    CHECK(std::ranges::all_of(names, [](std::string_view name) { return name == "y"; }));
  return c;
}

std::string ops(const CanonicalGraph& c) {
  std::string list;
  for (const Node& node : c.graph.nodes) list += (list.empty() ? "" : " ") + std::string(node.op->name);
  return list;
}

std::string operands(const std::string& dtype, const std::string& heads, int keys, int depth) {
  const std::string size = std::to_string(depth) + "]\n", places = std::to_string(keys) + ", ";
  return "input q: " + dtype + "[1, 4, 40, " + size + "input k: " + dtype + "[1, " + heads + ", " + places + size +
         "input v: " + dtype + "[1, " + heads + ", " + places + size;
}

std::string attention(const std::string& dtype, int depth, const std::string& operands) {
  return "y: " + dtype + "[1, 4, 40, " + std::to_string(depth) + "] = scaled_dot_product_attention(" + operands +
         ")\nreturn y\n";
}

}  // namespace

TEST_CASE("attention of large heads is two products with a softmax between, scores in float32") {
  const CanonicalGraph c =
      decomposed(operands("float16", "4", 45, 512) + attention("float16", 512, "q, k, v, scale=0.5"));
  CHECK(ops(c) == "cast cast transpose matmul mul softmax cast matmul");
  const std::string text = graph_text(c.graph);
  CHECK(text.find("float32[1, 4, 40, 45] = mul(") != std::string::npos);
  CHECK(text.find(", 0.5)") != std::string::npos);
  CHECK(text.find("y: float16[1, 4, 40, 512] = matmul(") != std::string::npos);
}

TEST_CASE("masks, grouped heads and symbols are what the formula says") {
  const std::string in = operands("bfloat16", "4", 45, 320), rows = "amax eq where sub exp sum where div cast matmul";
  CHECK(ops(decomposed(in + attention("bfloat16", 320, "q, k, v, is_causal=true"))) ==
        "arange arange unsqueeze le cast cast transpose matmul mul where softmax cast matmul");
  CHECK(ops(decomposed(in + "input m: bool[40, 45]\n" + attention("bfloat16", 320, "q, k, v, m"))) ==
        "cast cast transpose matmul mul where " + rows);
  CHECK(ops(decomposed(in + "input m: bfloat16[40, 45]\n" + attention("bfloat16", 320, "q, k, v, m"))) ==
        "cast cast transpose matmul mul cast add " + rows);
  CHECK(ops(decomposed(operands("bfloat16", "2", 45, 320) + attention("bfloat16", 320, "q, k, v, enable_gqa=true"))) ==
        "cast repeat_interleave cast transpose matmul mul softmax cast repeat_interleave matmul");
  CHECK(ops(decomposed("symbol n min=1 max=4096 multiple_of=1 hint=64\ninput q: float16[n, 512]\n"
                       "y: float16[n, 512] = scaled_dot_product_attention(q, q, q)\nreturn y\n")) ==
        "cast transpose matmul mul softmax cast matmul");
}

TEST_CASE("attention that a kernel has a form for stays, and what is not to be fused") {
  const std::string stays = "scaled_dot_product_attention";
  CHECK(ops(decomposed(operands("float16", "4", 45, 256) + attention("float16", 256, "q, k, v"))) == stays);
  CHECK(ops(decomposed(operands("float32", "4", 45, 64) + attention("float32", 64, "q, k, v"))) == stays);
  CanonicalGraph apart = canonical_of(operands("float16", "4", 45, 512) + attention("float16", 512, "q, k, v"));
  apart.graph.nodes[0].fuse = false;
  TrialMemory memory;
  decompose_attention(apart, memory);
  CHECK(ops(apart) == stays);
}
