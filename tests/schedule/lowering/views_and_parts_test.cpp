// Views behind what a kernel makes: a kernel may run over the shape before a last view, and axes that loads see in
// parts become several.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/text.h"
#include "schedule/kernel_forms.h"
#include "schedule/lowering/horizontal_fusion.h"
#include "schedule/lowering/lower_group.h"

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
  CHECK(form_of(units[0].kernel).form == KernelForm::kRowReduction);
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
  CHECK(form_of(units[0].kernel).form == KernelForm::kRowReduction);
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
  CHECK(form.form == KernelForm::kTensorCoreContraction);
  REQUIRE(form.contraction);
  CHECK(form.contraction->rows.size() == 2);     // pixels
  CHECK(form.contraction->columns.size() == 3);  // channels: a new one, and the place within a pixel
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
  CHECK(form_of(units[0].kernel).form == KernelForm::kContraction);
}

TEST_CASE("views and parts: what a concat joins is stored in its place by whoever makes it, in one launch") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[6, 8]
input v: float32[5, 8]
input w: float32[7, 8]
a: float32[6, 5] = linear(x, v)
b: float32[6, 7] = linear(x, w)
c: float32[6, 7] = relu(b)
d: float32[6, 3] = slice(x, dim=1, start=-3, end=8)
y: float32[6, 15] = concat(a, c, d, dim=1)
return y
)");
  const auto units = kernels_of(graph);
  REQUIRE(units.size() == 3);
  CHECK(launches_of(units).size() == 1);
  for (const LoweredUnit& unit : units) CHECK(unit.kernel.outputs[0].value == graph.outputs[0]);
  CHECK(units[1].kernel.outputs[0].index[1] == IndexExpr::axis(units[1].kernel.outputs[0].axes[1]) + 5);
}

TEST_CASE("views and parts: a product beside one that a concat stores in its place shares their launch") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: bfloat16[40, 64]
input z: bfloat16[40, 32]
input v: bfloat16[64, 64]
input w: bfloat16[48, 64]
a: bfloat16[40, 64] = linear(x, v)
b: bfloat16[40, 48] = linear(x, w)
c: bfloat16[40, 96] = concat(z, a, dim=1)
return b, c
)");
  const auto units = kernels_of(graph);
  CHECK(units.size() == 3);
  CHECK(launches_of(units).size() == 1);
}

TEST_CASE("views and parts: a concat of what no product makes is one expression") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[6, 8]
input z: float32[6, 4]
a: float32[6, 8] = relu(x)
b: float32[6, 4] = tanh(z)
y: float32[6, 12] = concat(a, b, dim=1)
return y
)");
  CHECK(kernels_of(graph).size() == 1);
}

TEST_CASE("views and parts: pieces of a product's columns, each for itself, are products side by side") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float16[6, 32]
input w: float16[48, 32]
p: float16[6, 48] = linear(x, w)
a: float16[6, 16], b: float16[6, 24], c: float16[6, 8] = split(p, dim=1, split_sizes=[16, 24, 8]) as pieces
r: float16[6, 16] = relu(a)
t: float16[6, 24] = tanh(b)
s: float16[6, 8] = sigmoid(c)
return r, t, s
)");
  const auto units = kernels_of(graph);
  CHECK(units.size() == 3);
  CHECK(launches_of(units).size() == 1);
}

TEST_CASE("views and parts: a product that two kernels need whole is stored") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float16[6, 32]
input w: float16[48, 32]
p: float16[6, 48] = linear(x, w)
t: float16[48, 6] = transpose(p, dim0=0, dim1=1)
r: float16[48, 6] = relu(t)
v: float16[288] = reshape(p, shape=[288])
s: float16[288] = tanh(v)
return r, s
)");
  bool stored = false;
  for (const LoweredUnit& unit : kernels_of(graph))
    for (const KernelOutput& output : unit.kernel.outputs) stored |= output.value == graph.find_value("p");
  CHECK(stored);
}

TEST_CASE("views and parts: rows that a concat joins are stored in their places, in one launch") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[2, 8, 5, 5]
a: float32[2, 8] = mean(x, dim=[2, 3])
b: float32[2, 8] = amax(x, dim=[2, 3])
y: float32[2, 16] = concat(a, b, dim=1)
return y
)");
  CHECK(launches_of(kernels_of(graph)).size() == 1);
}

TEST_CASE("views and parts: pieces of one row's product are made side by side") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float16[1, 32]
input w: float16[48, 32]
p: float16[1, 48] = linear(x, w)
a: float16[1, 16], b: float16[1, 32] = split(p, dim=1, split_sizes=[16, 32]) as pieces
r: float16[1, 16] = relu(a)
t: float16[1, 32] = tanh(b)
return r, t
)");
  CHECK(launches_of(kernels_of(graph)).size() == 1);
}

TEST_CASE("views and parts: outputs that are read at other indices are computed again there, in the same launch") {
  const auto launches = [](const char* output) {
    return launches_of(kernels_of(parse_graph_text(fmt::format(R"(model "m"
input x: float32[6, 8]
{}
a: float32[6, 3], b: float32[6, 5] = split(h, dim=1, split_sizes=[3, 5]) as s
c: float32[3, 6] = transpose(a, dim0=0, dim1=1)
d: float32[8, 6] = reshape(h, shape=[8, 6])
e: float32[6, 8] = transpose(d, dim0=0, dim1=1)
return h, a, c, e
)",
                                                               output))))
        .size();
  };
  CHECK(launches("h: float32[6, 8] = relu(x)") == 1);
  CHECK(launches("h: float32[6, 8] = softmax(x, dim=-1)") == 2);  // its rows are reduced once
}

TEST_CASE("views and parts: what follows a concat element by element is made in its parts, too") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float16[6, 32]
input v: float16[16, 32]
input w: float16[24, 32]
input r: float16[6, 40]
a: float16[6, 16] = linear(x, v)
b: float16[6, 24] = linear(x, w)
c: float16[6, 40] = concat(a, b, dim=1)
s: float16[6, 40] = add(c, r)
y: float16[6, 40] = relu(s)
return y
)");
  const auto units = kernels_of(graph);
  CHECK(units.size() == 2);
  CHECK(launches_of(units).size() == 1);
}

}  // namespace fusec::test
