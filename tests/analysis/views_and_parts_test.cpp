// Views behind what a kernel makes: a kernel may run over the shape before a last view, and axes that loads see in
// parts become several.
#include <doctest/doctest.h>

#include "analysis/kernel_forms.h"
#include "analysis/lower.h"
#include "ir/text.h"

namespace fusec::test {
namespace {

// The kernels of the whole graph as one group.
std::vector<LoweredUnit> kernels_of(const Graph& graph) {
  std::vector<NodeId> nodes;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) nodes.push_back(n);
  std::vector<LoweredUnit> units = lower_group(graph, nodes, graph.outputs);
  std::erase_if(units, [](const LoweredUnit& u) { return u.kind == LoweredUnit::Kind::kAlias; });
  return units;
}

}  // namespace

TEST_CASE("views and parts: rows that are quantized and shaped back are one kernel with their scales") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[4, 32]
blocks: float32[4, 4, 8] = reshape(x, shape=[4, 4, 8])
size: float32[4, 4, 8] = abs(blocks)
most: float32[4, 4, 1] = amax(size, dim=[-1], keepdim=true)
scale: float32[4, 4, 1] = div(most, 127.0)
q: int8[4, 4, 8] = quantize(blocks, scale, dtype="int8")
y: int8[4, 32] = reshape(q, shape=[4, 32])
s: float32[4, 4] = squeeze(scale, dim=[-1])
return y, s
)");
  const auto units = kernels_of(graph);
  REQUIRE(units.size() == 1);
  CHECK(form_of(units[0].kernel).form == KernelForm::kRows);
  CHECK(units[0].kernel.outputs.size() == 2);
}

TEST_CASE("views and parts: a norm of groups of channels, shaped back and scaled by channel, is rows") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[2, 12, 5, 3]
input g: float32[1, 12, 1, 1]
groups: float32[2, 4, 45] = reshape(x, shape=[2, 4, 45])
mean: float32[2, 4, 1] = mean(groups, dim=[-1], keepdim=true)
var: float32[2, 4, 1] = var(groups, dim=[-1], correction=1, keepdim=true)
away: float32[2, 4, 45] = sub(groups, mean)
root: float32[2, 4, 1] = rsqrt(var)
n: float32[2, 4, 45] = mul(away, root)
back: float32[2, 12, 5, 3] = reshape(n, shape=[2, 12, 5, 3])
y: float32[2, 12, 5, 3] = mul(back, g)
return y
)");
  const auto units = kernels_of(graph);
  REQUIRE(units.size() == 1);
  CHECK(form_of(units[0].kernel).form == KernelForm::kRows);
}

TEST_CASE("views and parts: a convolution stores what a pixel shuffle and a clamp make of it") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float16[1, 8, 3, 5]
input w: float16[12, 8, 1, 1]
c: float16[1, 12, 3, 5] = conv2d(x, w)
parts: float16[1, 3, 2, 2, 3, 5] = reshape(c, shape=[1, 3, 2, 2, 3, 5])
turned: float16[1, 3, 3, 2, 5, 2] = permute(parts, dims=[0, 1, 4, 2, 5, 3])
whole: float16[1, 3, 6, 10] = reshape(turned, shape=[1, 3, 6, 10])
y: float16[1, 3, 6, 10] = clamp(whole, min=0, max=1)
return y
)");
  const auto units = kernels_of(graph);
  REQUIRE(units.size() == 1);
  const FormOfKernel form = form_of(units[0].kernel);
  CHECK(form.form == KernelForm::kTensorCoreProduct);
  REQUIRE(form.product);
  CHECK(form.product->rows.size() == 2);     // pixels
  CHECK(form.product->columns.size() == 3);  // channels: a new one, and the place within a pixel
}

TEST_CASE("views and parts: heads that are merged behind a product, scaled, are a product") {
  const Graph graph = parse_graph_text(R"(model "m"
input a: float32[3, 10, 16]
input b: float32[3, 16, 8]
h: float32[3, 10, 8] = bmm(a, b)
t: float32[10, 3, 8] = transpose(h, dim0=0, dim1=1)
m: float32[10, 24] = reshape(t, shape=[10, 24])
y: float32[10, 24] = mul(m, 0.5)
return y
)");
  const auto units = kernels_of(graph);
  REQUIRE(units.size() == 1);
  CHECK(form_of(units[0].kernel).form == KernelForm::kProduct);
}

}  // namespace fusec::test
