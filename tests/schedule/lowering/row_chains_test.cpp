// Reductions of the same rows, one behind the other with elementwise work between: one kernel, however many, and its
// expressions grow with their number and no faster.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/lowering/shared_space.h"
#include "ir/text.h"
#include "schedule/kernel_forms.h"
#include "schedule/lowering/lower_group.h"

namespace fusec::test {
namespace {

// The kernels of the whole graph as one group.
std::vector<LoweredUnit> kernels_of(const Graph& graph) {
  std::vector<NodeId> nodes;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) nodes.push_back(n);
  return lower_group(graph, nodes, graph.outputs);
}

// `count` softmaxes of rows of softmaxes.
Graph softmaxes(int count) {
  std::string text = "model \"m\"\ninput x0: float16[600, 300]\n";
  for (int i = 0; i < count; ++i)
    text += "x" + std::to_string(i + 1) + ": float16[600, 300] = softmax(x" + std::to_string(i) + ", dim=-1)\n";
  return parse_graph_text(text + "return x" + std::to_string(count) + "\n");
}

}  // namespace

TEST_CASE("row chains: norm, softmax and its greatest, both given back, are one kernel") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float16[600, 300]
norm: float16[600, 300] = layer_norm(x, normalized_shape=[300])
shares: float16[600, 300] = softmax(norm, dim=-1)
greatest: float16[600] = amax(shares, dim=[-1])
return shares, greatest
)");
  const auto units = kernels_of(graph);
  REQUIRE(units.size() == 1);
  CHECK(form_of(units[0].kernel).form == KernelForm::kRowReduction);
  CHECK(is_rows_throughout(units[0].kernel));
}

// The least of all rows' maxima has fewer dimensions than the kernel's iteration space.
TEST_CASE("row chains: a maximum of maxima that is spread over the rows again") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[5, 5]
input y: float32[5, 5]
rows: float32[5] = amax(x, dim=[1])
all: float32[] = amax(rows, dim=[0])
least: float32[5, 5] = minimum(all, y)
return least, all
)");
  std::vector<ValueId> stored;
  for (const LoweredUnit& unit : kernels_of(graph))
    for (const KernelOutput& output : unit.kernel.outputs) stored.push_back(output.value);
  for (const ValueId v : graph.outputs) CHECK(std::ranges::find(stored, v) != stored.end());
}

// What an element is asked for under is no condition on the row that its norm reduces: it would name that row's places.
TEST_CASE("row chains: halves that change places between two norms leave the first one's sums as they are") {
  for (const int length : {32, 33}) {
    const std::string n = std::to_string(length), rest = std::to_string(length - 16);
    const Graph graph =
        parse_graph_text("model \"m\"\ninput x: float32[600, " + n + "]\na: float32[600, " + n +
                         "] = layer_norm(x, normalized_shape=[" + n + "])\nb: float32[600, 16], c: float32[600, " +
                         rest + "] = split(a, split_sizes=[16, " + rest + "], dim=1)\nd: float32[600, " + n +
                         "] = concat(c, b, dim=1)\ny: float32[600, " + n + "] = softmax(d, dim=-1)\nreturn y\n");
    const auto units = kernels_of(graph);
    REQUIRE(units.size() == 1);
    CHECK(row_reductions(units[0].kernel).size() == 4);
  }
}

TEST_CASE("row chains: whatever is computed of elements may stand inside a reduction") {
  std::string text = "model \"m\"\ninput x: float32[64, 300]\nt0: float32[64, 300] = erf(x)\n";
  for (int i = 0; i < 12; ++i)
    text += "t" + std::to_string(i + 1) + ": float32[64, 300] = " + (i % 2 == 0 ? "tanh" : "exp") + "(t" +
            std::to_string(i) + ")\n";
  const Graph graph = parse_graph_text(text + "s: float32[64] = sum(t12, dim=[-1])\nreturn s\n");
  CHECK(kernels_of(graph).size() == 1);
}

TEST_CASE("row chains: forty reductions of a row are one kernel, and not a large one") {
  const auto few = kernels_of(softmaxes(10)), many = kernels_of(softmaxes(40));
  REQUIRE(few.size() == 1);
  REQUIRE(many.size() == 1);
  CHECK(row_reductions(many[0].kernel).size() == 80);
  CHECK(many[0].kernel.pool.size() < 5 * few[0].kernel.pool.size());
}

TEST_CASE("row chains: log-probabilities and those of the targets, looked up among them, are one kernel") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float16[64, 1000]
input target: int64[64]
logs: float16[64, 1000] = log_softmax(x, dim=-1)
place: int64[64, 1] = unsqueeze(target, dim=1)
one: float16[64, 1] = gather(logs, place, dim=1)
flat: float16[64] = squeeze(one, dim=[1])
loss: float16[64] = neg(flat)
return logs, loss
)");
  std::size_t kernels = 0;
  for (const LoweredUnit& unit : kernels_of(graph)) kernels += unit.kind == LoweredUnit::Kind::kKernel;
  CHECK(kernels == 1);
}

TEST_CASE("row chains: reductions of different rows stay apart") {
  const Graph graph = parse_graph_text(R"(model "m"
input x: float32[300, 300]
rows: float32[300, 300] = softmax(x, dim=-1)
columns: float32[300, 300] = softmax(rows, dim=0)
return columns
)");
  CHECK(kernels_of(graph).size() == 2);
}

TEST_CASE("row chains: a reduction of reductions of its kind is one over the axes of both") {
  const auto reductions = [](const std::string& nodes) {
    const auto units =
        kernels_of(parse_graph_text("model \"m\"\ninput x: float32[4, 6, 8, 10]\n" + nodes + "return y\n"));
    REQUIRE(units.size() == 1);
    return row_reductions(units[0].kernel).size();
  };
  for (const std::string op : {"sum", "mean", "amax"})
    CHECK(reductions("a: float32[4, 6, 8] = " + op + "(x, dim=[3])\ny: float32[4, 8] = " + op + "(a, dim=[1])\n") == 1);
  CHECK(reductions("a: float32[4, 6, 8, 1] = vector_norm(x, ord=1, dim=[3], keepdim=true)\n"
                   "b: float32[4, 6, 1, 1] = mean(a, dim=[2], keepdim=true)\n"
                   "y: float32[6] = sum(b, dim=[0, 2, 3])\n") == 1);
}

TEST_CASE("row chains: a greatest sum, and a sum of rows that need another reduction, wait for the first") {
  const auto kernels = [](const std::string& nodes) {
    return kernels_of(parse_graph_text("model \"m\"\ninput x: float32[4, 6]\ninput r: float32[1, 6]\n" + nodes)).size();
  };
  CHECK(kernels("a: float32[4] = sum(x, dim=[1])\ny: float32[] = amax(a, dim=[0])\nreturn y\n") == 2);
  const std::string greatest = "a: float32[4] = amax(w, dim=[1])\ny: float32[] = amax(a, dim=[0])\n";
  CHECK(kernels("s: float32[4, 6] = softmax(x, dim=-1)\nw: float32[4, 6] = mul(s, x)\n" + greatest + "return y\n") ==
        2);
  CHECK(kernels("s: float32[1, 6] = softmax(r, dim=-1)\nw: float32[4, 6] = minimum(s, x)\n" + greatest +
                "return s, y\n") == 2);
}

}  // namespace fusec::test
