// Segments of rows that are reduced behind whole rows: one kernel of rows, whose segments are found.
#include "schedule/reduction/row_segments.h"

#include <doctest/doctest.h>

#include <string>

#include "ir/text.h"
#include "schedule/lowering/lower_group.h"
#include "schedule/reduction/row_form.h"

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

// Rows of 256 that are normalized and then quantized by blocks of `block` columns.
Graph quantized(const std::string& block, const std::string& blocks) {
  return parse_graph_text(R"(model "m"
input x: float32[30, 256]
norm: float32[30, 256] = rms_norm(x, normalized_shape=[256])
parts: float32[30, )" + blocks +
                          ", " + block + R"(] = reshape(norm, shape=[30, )" + blocks + ", " + block + R"(])
size: float32[30, )" + blocks +
                          ", " + block + R"(] = abs(parts)
most: float32[30, )" + blocks +
                          R"(, 1] = amax(size, dim=[-1], keepdim=true)
scale: float32[30, )" + blocks +
                          R"(, 1] = div(most, 448.0)
ratio: float32[30, )" + blocks +
                          ", " + block + R"(] = div(parts, scale)
code: float8_e4m3fn[30, )" +
                          blocks + ", " + block + R"(] = cast(ratio, dtype="float8_e4m3fn")
y: float8_e4m3fn[30, 256] = reshape(code, shape=[30, 256])
return y, scale
)");
}

}  // namespace

TEST_CASE("row segments: a norm and the scales of its blocks are one kernel") {
  const Graph graph = quantized("64", "4");
  const auto units = kernels_of(graph);
  REQUIRE(units.size() == 1);
  const auto form = row_form(units[0].kernel, graph);
  REQUIRE(form);
  CHECK(form->reductions.size() == 1);
  CHECK(form->segments.size() == 1);
  CHECK(form->segment == 64);
  CHECK(form->rows.size() == 1);
  CHECK(form->columns.size() == 1);
  std::size_t of_segments = 0;
  for (const KernelOutput& output : form->kernel.outputs) of_segments += is_of_segments(*form, output);
  CHECK(of_segments == 1);
}

TEST_CASE("row segments: what lanes of a warp cannot have side by side stays apart") {
  CHECK(kernels_of(quantized("4", "64")).size() > 1);
  CHECK(kernels_of(quantized("128", "2")).size() == 1);
  const Graph uneven = parse_graph_text(R"(model "m"
input x: float32[30, 192]
norm: float32[30, 192] = softmax(x, dim=-1)
parts: float32[30, 2, 96] = reshape(norm, shape=[30, 2, 96])
y: float32[30, 2, 96] = softmax(parts, dim=-1)
return y
)");
  CHECK(kernels_of(uneven).size() > 1);
}

TEST_CASE("row segments: the sum in front, given back in its own shape, is stored by the same kernel") {
  const Graph graph = parse_graph_text(R"(model "m"
symbol t min=1 max=8192
input x: bfloat16[t, 512]
input r: bfloat16[t, 512]
sum: bfloat16[t, 512] = add(x, r)
norm: bfloat16[t, 512] = rms_norm(sum, normalized_shape=[512])
parts: bfloat16[t, 8, 64] = reshape(norm, shape=[-1, 8, 64])
most: bfloat16[t, 8, 1] = amax(parts, dim=[-1], keepdim=true)
y: bfloat16[t, 8, 64] = div(parts, most)
return sum, norm, y, most
)");
  const auto units = kernels_of(graph);
  REQUIRE(units.size() == 1);
  CHECK(units[0].kernel.outputs.size() == 4);
  CHECK(row_form(units[0].kernel, graph)->segment == 64);
}

TEST_CASE("row segments: heads of a normalized row are normalized with it") {
  const Graph graph = parse_graph_text(R"(model "m"
symbol t min=1 max=8192
input x: bfloat16[t, 1024]
input w: bfloat16[1024]
input g: bfloat16[128]
norm: bfloat16[t, 1024] = rms_norm(x, w, normalized_shape=[1024])
heads: bfloat16[t, 8, 128] = reshape(norm, shape=[-1, 8, 128])
y: bfloat16[t, 8, 128] = rms_norm(heads, g, normalized_shape=[128])
return y
)");
  const auto units = kernels_of(graph);
  REQUIRE(units.size() == 1);
  CHECK(row_form(units[0].kernel, graph)->segment == 128);
}

}  // namespace fusec::test
