// Dimensions of extent 1: no index depends on them and nothing is reduced along them, and a row times a matrix is the
// product that it would be with more rows.
#include <doctest/doctest.h>

#include <string>

#include "analysis/lowering/formula_facts.h"
#include "ir/text.h"
#include "schedule/kernel_forms.h"
#include "schedule/lowering/lower_group.h"

namespace fusec::test {
namespace {

// The whole graph as one group.
std::vector<LoweredUnit> lowered(const Graph& graph) {
  std::vector<NodeId> nodes;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) nodes.push_back(n);
  std::vector<LoweredUnit> units = lower_group(graph, nodes, graph.outputs);
  std::erase_if(units, [](const LoweredUnit& u) { return u.kind == LoweredUnit::Kind::kAlias; });
  return units;
}

}  // namespace

TEST_CASE("extent 1: attention of one query is one kernel, with the permutation behind it") {
  const Graph graph = parse_graph_text(R"(model "m"
input q: float16[2, 1, 64]
input k: float16[2, 2, 65, 32]
input v: float16[2, 2, 65, 32]
split: float16[2, 1, 2, 32] = reshape(q, shape=[2, 1, 2, 32])
heads: float16[2, 2, 1, 32] = transpose(split, dim0=1, dim1=2)
a: float16[2, 2, 1, 32] = scaled_dot_product_attention(heads, k, v)
b: float16[2, 1, 2, 32] = permute(a, dims=[0, 2, 1, 3])
y: float16[2, 1, 64] = reshape(b, shape=[2, 1, 64])
return y
)");
  const auto units = lowered(graph);
  REQUIRE(units.size() == 1);
  CHECK(form_of(units[0].kernel).form == KernelForm::kAttention);
}

TEST_CASE("extent 1: attention of one query written out is one kernel") {
  const Graph graph = parse_graph_text(R"(model "m"
input q: float32[3, 1, 16]
input k: float32[3, 16, 65]
input v: float32[3, 65, 16]
s: float32[3, 1, 65] = matmul(q, k)
p: float32[3, 1, 65] = softmax(s, dim=-1)
a: float32[3, 1, 16] = matmul(p, v)
y: float32[1, 3, 16] = permute(a, dims=[1, 0, 2])
return y
)");
  const auto units = lowered(graph);
  REQUIRE(units.size() == 1);
  CHECK(form_of(units[0].kernel).form == KernelForm::kAttention);
}

TEST_CASE("extent 1: attention of one key is rows: its softmax reduces nothing") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[1, 64]
q: float32[1, 32], k: float32[1, 16], v: float32[1, 16] = split(x, dim=-1, split_sizes=[32, 16, 16]) as pieces
q1: float32[1, 4, 8] = reshape(q, shape=[1, 4, 8])
q2: float32[4, 1, 8] = transpose(q1, dim0=0, dim1=1)
k1: float32[1, 2, 8] = reshape(k, shape=[1, 2, 8])
k2: float32[2, 1, 8] = transpose(k1, dim0=0, dim1=1)
k3: float32[4, 1, 8] = repeat_interleave(k2, dim=0, repeats=2)
v1: float32[1, 2, 8] = reshape(v, shape=[1, 2, 8])
v2: float32[2, 1, 8] = transpose(v1, dim0=0, dim1=1)
v3: float32[4, 1, 8] = repeat_interleave(v2, dim=0, repeats=2)
y: float32[4, 1, 8] = scaled_dot_product_attention(q2, k3, v3, is_causal=true)
return y
)");
  const auto units = lowered(graph);
  REQUIRE(units.size() == 1);
  CHECK(form_of(units[0].kernel).form == KernelForm::kRowReduction);
}

TEST_CASE("extent 1: a convolution's window of one element is no axis of its sum") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[2, 16, 5, 7]
input w: float32[8, 16, 1, 1]
y: float32[2, 8, 5, 7] = conv2d(x, w)
return y
)");
  const auto units = lowered(graph);
  REQUIRE(units.size() == 1);
  for (const ExprId id : reachable(units[0].kernel.pool, roots_of(units[0].kernel))) {
    const ExprNode& n = units[0].kernel.pool[id];
    if (n.op == ExprOp::kReduce) CHECK(n.axes.size() == 1);
  }
}

TEST_CASE("extent 1: a product over one element is no sum") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[16, 1]
input w: float32[1, 24]
y: float32[16, 24] = matmul(x, w)
return y
)");
  const auto units = lowered(graph);
  REQUIRE(units.size() == 1);
  CHECK(form_of(units[0].kernel).form == KernelForm::kPointwise);
  CHECK_FALSE(formula_facts(graph, graph.nodes[0], 0).reduces);
}

TEST_CASE("extent 1: a row times a matrix is a product, though none of tiles") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[1, 64]
input w: float32[48, 64]
y: float32[1, 48] = linear(x, w)
return y
)");
  const FormulaFacts facts = formula_facts(graph, graph.nodes[0], 0);
  CHECK(facts.contraction);
  CHECK_FALSE(facts.matmul);
}

TEST_CASE("extent 1: what prepares a short row is computed where the row is read") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float16[1, 34]
constant xs: float32[1]
constant w: int8[66, 34]
constant ws: float32[66]
q: int8[1, 34] = quantize(x, xs, dtype="int8")
y: float16[1, 66] = static_quant_linear(q, w, ws, xs, out_dtype="float16")
return y
)");
  CHECK(lowered(graph).size() == 1);
}

TEST_CASE(
    "extent 1: the product of one row and the norm of it are one kernel, also where the sum before is an output") {
  const std::string model = R"(model "m"
input x: bfloat16[1, 130]
input r: bfloat16[1, 33]
constant w: bfloat16[33, 130]
constant g: bfloat16[33]
p: bfloat16[1, 33] = linear(x, w)
s: bfloat16[1, 33] = add(p, r)
y: bfloat16[1, 33] = rms_norm(s, g, normalized_shape=[33])
)";
  for (const char* outputs : {"return y\n", "return y, s\n"}) {
    const auto units = lowered(parse_graph_text(model + outputs));
    REQUIRE(units.size() == 1);
    CHECK(form_of(units[0].kernel).form == KernelForm::kRowGemm);
  }
}

TEST_CASE("extent 1: a row is quantized by its largest element where it is made") {
  const auto units = lowered(parse_graph_text(R"(model "m"
input x: float32[1, 1, 70]
constant w: float32[40, 70]
p: float32[1, 1, 40] = linear(x, w)
a: float32[1, 1, 40] = abs(p)
m: float32[1, 1, 1] = amax(a, dim=[-1], keepdim=true)
s: float32[1, 1, 1] = div(m, 127.0)
q: int8[1, 1, 40] = quantize(p, s, dtype="int8")
return q, s
)"));
  REQUIRE(units.size() == 1);
  CHECK(form_of(units[0].kernel).form == KernelForm::kRowGemm);
}

TEST_CASE("extent 1: attention of one query whose weights are an output is one kernel") {
  const auto units = lowered(parse_graph_text(R"(model "m"
input q: float32[2, 4, 1, 16]
input k: float32[2, 4, 16, 7]
input v: float32[2, 4, 7, 16]
s: float32[2, 4, 1, 7] = matmul(q, k)
p: float32[2, 4, 1, 7] = softmax(s, dim=-1)
a: float32[2, 4, 1, 16] = matmul(p, v)
return a, p
)"));
  REQUIRE(units.size() == 1);
  CHECK(form_of(units[0].kernel).form == KernelForm::kAttention);
}

TEST_CASE("extent 1: a product for each head is not made anew for each reduction of its rows") {
  // The softmax reads the scores from memory: no schedule keeps rows of several products of one row.
  for (const char* outputs : {"return p\n", "return p, s\n"})
    for (const auto& unit : lowered(parse_graph_text(std::string(R"(model "m"
input q: float32[2, 4, 1, 16]
input k: float32[2, 4, 16, 7]
s: float32[2, 4, 1, 7] = matmul(q, k)
p: float32[2, 4, 1, 7] = softmax(s, dim=-1)
)") + outputs))) {
      const FormOfKernel form = form_of(unit.kernel);
      CHECK((form.form == KernelForm::kRowReduction || form.form == KernelForm::kRowGemm));
    }
}

}  // namespace fusec::test
