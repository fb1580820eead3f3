// Which units of a group are one kernel of rows and what is folded along their columns.
#include "schedule/lowering/cross_row_reduction.h"

#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <utility>

#include "ir/text.h"

namespace fusec::test {
namespace {

struct Group {
  Graph graph;
  std::vector<LoweredUnit> units;
  std::vector<CrossRowUnits> folded;
  std::size_t launches = 0;
};

// The whole graph as one group.
Group group_of(const std::string& text) {
  Group group{.graph = parse_graph_text("model \"m\"\n" + text), .units = {}, .folded = {}};
  std::vector<NodeId> nodes(group.graph.nodes.size());
  std::iota(nodes.begin(), nodes.end(), NodeId{0});
  group.units = lower_group(group.graph, nodes, group.graph.outputs);
  const Target target = target_for("sm_90a");
  const FormsOfUnits forms = forms_of(group.units);
  group.folded = cross_row_units(group.units, forms, group.graph, target);
  group.launches = launches_of(group.units, forms, group.folded, group.graph, target).size();
  return group;
}

// What the backward pass of an RMSNorm gives back of x, and of its weight.
std::string norm_gradients(const std::string& rows, const std::string& columns = "1024") {
  const std::string shape = "float32[" + rows + ", " + columns + "]", of_row = "float32[" + rows + ", 1]";
  return "input x: " + shape + "\ninput dy: " + shape + "\ninput scale: " + of_row + "\nnormal: " + shape +
         " = mul(x, scale)\nproduct: " + shape + " = mul(dy, normal)\nmean: " + of_row +
         " = mean(product, dim=[-1], keepdim=true)\nback: " + shape + " = mul(normal, mean)\nrest: " + shape +
         " = sub(dy, back)\ndx: " + shape + " = mul(rest, scale)\ndw: float32[" + columns +
         "] = sum(product, dim=[0])\n";
}

}  // namespace

TEST_CASE("column folds: the gradients of a norm's input and weight are one launch") {
  const Group group = group_of(norm_gradients("4096") + "return dx, dw\n");
  REQUIRE(group.folded.size() == 1);
  const CrossRowUnits& folded = group.folded[0];
  CHECK(folded.columns.size() == 1);
  CHECK(folded.cross_row.folded == 1);
  CHECK(folded.cross_row.layout.reduction_group == ReductionGroup::kWarp);
  CHECK(folded.cross_row.layout.rows_ahead == 2);
  CHECK(folded.cross_row.elements == 32);
  CHECK(folded.cross_row.work.launches == 2);
  CHECK(group.launches == 1);
}

TEST_CASE("column folds: two blocks a multiprocessor copy long rows ahead, or keep them if vectors cannot be copied") {
  for (const auto& [columns, ahead] : {std::pair("4096", 2), std::pair("8192", 1), std::pair("4095", 0)}) {
    const Group group = group_of(norm_gradients("8192", columns) + "return dx, dw\n");
    REQUIRE(group.folded.size() == 1);
    const RowLayout& layout = group.folded[0].cross_row.layout;
    CHECK(layout.reduction_group == ReductionGroup::kBlock);
    CHECK(layout.blocks_at_once >= 2);
    CHECK(layout.rows_ahead == ahead);
  }
}

TEST_CASE("column folds: what rows make for columns alone is not stored") {
  const Group group = group_of(norm_gradients("4096") + "return dx, dw\n");
  REQUIRE(group.folded.size() == 1);
  for (const KernelOutput& output : group.units[group.folded[0].rows].kernel.outputs) {
    const bool needed = group.graph.value(output.value).name == "dx";
    CHECK((std::ranges::find(group.folded[0].unstored, output.value) == group.folded[0].unstored.end()) == needed);
  }
  const Group all = group_of(norm_gradients("4096") + "return dx, product, dw\n");
  REQUIRE(all.folded.size() == 1);
  CHECK(all.folded[0].unstored.empty());
}

TEST_CASE("column folds: few rows do not pay for a second launch") {
  CHECK(group_of(norm_gradients("64") + "return dx, dw\n").folded.empty());
}

TEST_CASE("column folds: positions of columns' greatest are no fold, their greatest are") {
  const std::string rows = "input x: float32[8192, 1024]\ny: float32[8192, 1024] = softmax(x, dim=-1)\n";
  CHECK(group_of(rows + "m: float32[1024] = amax(x, dim=[0])\nreturn y, m\n").folded.size() == 1);
  CHECK(group_of(rows + "m: int64[1024] = argmax(x, dim=0)\nreturn y, m\n").folded.empty());
}

TEST_CASE("column folds: rows and columns of a square are kernels that read one another's tensor once") {
  const Group group = group_of(
      "input x: float32[4096, 4096]\nr: float32[4096] = sum(x, dim=[1])\nc: float32[4096] = sum(x, dim=[0])\n"
      "return r, c\n");
  CHECK(group.units.size() == 2);
  REQUIRE(group.folded.size() == 1);
  CHECK(group.folded[0].cross_row.rows.columns.size() == 1);
}

TEST_CASE("column folds: the more there is to compute of an element, the fewer a thread has") {
  std::string text = "input x: float32[4096, 1024]\ns: float32[4096, 1024] = softmax(x, dim=-1)\n";
  std::string last = "s";
  for (int i = 0; i < 12; ++i) {
    const std::string name = "t" + std::to_string(i);
    text += name + ": float32[4096, 1024] = tanh(" + std::exchange(last, name) + ")\n";
  }
  const Group group = group_of(text + "c: float32[1024] = sum(" + last + ", dim=[0])\nreturn " + last + ", c\n");
  REQUIRE(group.folded.size() == 1);
  CHECK(group.folded[0].cross_row.layout.reduction_group == ReductionGroup::kBlock);
  CHECK(group.folded[0].cross_row.elements < 32);
}

TEST_CASE("column folds: what is read of other rows is none") {
  const Group group = group_of(
      "input x: float32[4096, 1024]\nr: float32[4096, 1] = sum(x, dim=[1], keepdim=true)\n"
      "f: float32[4096, 1] = flip(r, dims=[0])\np: float32[4096, 1024] = mul(x, f)\n"
      "c: float32[1024] = sum(p, dim=[0])\nreturn r, c\n");
  CHECK(group.folded.empty());
}

}  // namespace fusec::test
