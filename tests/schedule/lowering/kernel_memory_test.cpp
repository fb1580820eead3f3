// The memory of built kernels: a unit is built once for all groups in which the same values are substituted, and what
// comes of a group does not depend on what was lowered before it.
#include "schedule/lowering/kernel_memory.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "ir/text.h"
#include "schedule/form_memory.h"
#include "schedule/lowering/lower_group.h"

namespace fusec::test {
namespace {

std::vector<NodeId> nodes_between(NodeId first, NodeId end) {
  std::vector<NodeId> nodes;
  for (NodeId n = first; n < end; ++n) nodes.push_back(n);
  return nodes;
}

// What nodes behind the group, or the model's caller, need of it.
std::vector<ValueId> outputs_of(const Graph& graph, NodeId first, NodeId end) {
  std::vector<ValueId> outputs;
  for (NodeId n = first; n < end; ++n)
    for (ValueId v = graph.nodes[n].first_output; v < graph.nodes[n].first_output + graph.nodes[n].output_count; ++v) {
      const bool returned = std::ranges::find(graph.outputs, v) != graph.outputs.end();
      const bool read = std::ranges::any_of(nodes_between(end, static_cast<NodeId>(graph.nodes.size())), [&](NodeId m) {
        return std::ranges::find(graph.nodes[m].inputs, v) != graph.nodes[m].inputs.end();
      });
      if (returned || read) outputs.push_back(v);
    }
  return outputs;
}

void check_alike(const std::vector<LoweredUnit>& units, const std::vector<LoweredUnit>& expected) {
  REQUIRE(units.size() == expected.size());
  for (std::size_t u = 0; u < units.size(); ++u) {
    CHECK(units[u].kind == expected[u].kind);
    CHECK(units[u].kernel == expected[u].kernel);
    CHECK(units[u].inner == expected[u].inner);
  }
}

constexpr std::string_view kBlock = R"(model "m"
input x: float16[1, 12, 32]
constant wq: float16[32, 32]
constant wk: float16[32, 32]
constant wv: float16[32, 32]
constant g: float16[32]
n: float16[1, 12, 32] = rms_norm(x, g, eps=1e-05, normalized_shape=[32])
q: float16[1, 12, 32] = linear(n, wq)
k: float16[1, 12, 32] = linear(n, wk)
v: float16[1, 12, 32] = linear(n, wv)
qh: float16[1, 12, 4, 8] = reshape(q, shape=[1, 12, 4, 8])
qt: float16[1, 4, 12, 8] = permute(qh, dims=[0, 2, 1, 3])
kh: float16[1, 12, 4, 8] = reshape(k, shape=[1, 12, 4, 8])
kt: float16[1, 4, 12, 8] = permute(kh, dims=[0, 2, 1, 3])
vh: float16[1, 12, 4, 8] = reshape(v, shape=[1, 12, 4, 8])
vt: float16[1, 4, 12, 8] = permute(vh, dims=[0, 2, 1, 3])
a: float16[1, 4, 12, 8] = scaled_dot_product_attention(qt, kt, vt)
at: float16[1, 12, 4, 8] = permute(a, dims=[0, 2, 1, 3])
y: float16[1, 12, 32] = reshape(at, shape=[1, 12, 32])
r: float16[1, 12, 32] = add(y, x)
t: float16[1, 12, 32] = tanh(r)
s: float16[1, 12, 1] = sum(t, dim=[-1], keepdim=true)
c: int8[1, 12, 32] = quantize(t, 0.1, dtype="int8")
return r, s, c
)";

}  // namespace

TEST_CASE("kernel memory: every run of nodes is lowered as without a memory") {
  const Graph graph = parse_graph_text(kBlock);
  LoweringMemory memory;
  FormMemory forms;
  const auto count = static_cast<NodeId>(graph.nodes.size());
  for (NodeId first = 0; first < count; ++first)
    for (NodeId end = first + 1; end <= count; ++end) {
      CAPTURE(first);
      CAPTURE(end);
      const std::vector<NodeId> nodes = nodes_between(first, end);
      const std::vector<ValueId> outputs = outputs_of(graph, first, end);
      for (const bool round_intermediates : {false, true})
        check_alike(lower_group(graph, nodes, outputs, round_intermediates, &forms, &memory),
                    lower_group(graph, nodes, outputs, round_intermediates));
    }
}

TEST_CASE("kernel memory: a unit is built anew where another value is substituted") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[4, 32]
e: float32[4, 32] = exp(x)
t: float32[4, 32] = tanh(e)
return t
)");
  LoweringMemory memory;
  const NodeId exp = 0, tanh = 1;
  const ValueId e = graph.nodes[exp].first_output, t = graph.nodes[tanh].first_output;
  const auto kernel = [&](const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs) {
    return lower_group(graph, nodes, outputs, false, nullptr, &memory).back().kernel;
  };
  CHECK(kernel({tanh}, {t}).nodes == std::vector<NodeId>{tanh});
  CHECK(kernel({exp, tanh}, {t}).nodes == std::vector<NodeId>{exp, tanh});
  CHECK(kernel({exp, tanh}, {e, t}).outputs.size() == 2);
  CHECK(kernel({tanh}, {t}).nodes == std::vector<NodeId>{tanh});
}

}  // namespace fusec::test
