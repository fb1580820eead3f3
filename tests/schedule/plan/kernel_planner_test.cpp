// What is planned of a kernel, as values. Rungs are found once for each target and for the types of its tensors.
#include "schedule/plan/kernel_planner.h"

#include <doctest/doctest.h>

#include <numeric>
#include <string>

#include "ir/text.h"
#include "schedule/form_memory.h"
#include "schedule/lowering/lower_group.h"

namespace fusec::test {
namespace {

// A graph that is one kernel.
struct Planned {
  Graph graph;
  Kernel kernel;
  std::shared_ptr<const FormOfKernel> form;

  explicit Planned(const std::string& text, FormMemory* forms = nullptr) : graph(parse_graph_text(text)) {
    std::vector<NodeId> nodes(graph.nodes.size());
    std::iota(nodes.begin(), nodes.end(), NodeId{0});
    FormMemory own;
    std::vector<LoweredUnit> units = lower_group(graph, nodes, graph.outputs, false, forms ? forms : &own);
    std::erase_if(units, [](const LoweredUnit& u) { return u.kind != LoweredUnit::Kind::kKernel; });
    REQUIRE(units.size() == 1);
    kernel = std::move(units[0].kernel);
    form = units[0].form;
  }

  KernelPlanner on(const Target& target) const { return {kernel, *form, graph, target}; }
};

std::string linear(int rows, int columns, int k, const std::string& dtype = "float16") {
  const std::string m = std::to_string(rows), n = std::to_string(columns), d = std::to_string(k);
  return "model \"m\"\ninput x: " + dtype + "[" + m + ", " + d + "]\ninput w: " + dtype + "[" + n + ", " + d +
         "]\ny: " + dtype + "[" + m + ", " + n + "] = linear(x, w)\nreturn y\n";
}

std::string softmax(int columns) {
  const std::string n = std::to_string(columns);
  return "model \"m\"\ninput x: float32[64, " + n + "]\ny: float32[64, " + n + "] = softmax(x, dim=1)\nreturn y\n";
}

std::string convolved(const std::string& images) {
  return "model \"m\"\ninput x: float16[" + images + ", 64, 30, 30]\ninput w: float16[64, 64, 3, 3]\ny: float16[" +
         images + ", 64, 30, 30] = conv2d(x, w, padding=[1, 1])\nreturn y\n";
}

const Target kA100 = target_for("sm_80"), kH100 = target_for("sm_90a");

}  // namespace

TEST_CASE("rungs are found once for a target and a graph's types") {
  FormMemory forms;
  const Planned one(softmax(128), &forms), again(softmax(128), &forms);
  const RowCandidates* rows = one.on(kA100).rows();
  REQUIRE(rows);
  CHECK(one.on(kA100).rows() == rows);
  CHECK(again.on(kA100).rows() == rows);
  CHECK(one.on(kH100).rows() != rows);
  CHECK(row_form_of(one.kernel, *one.form, one.graph) == row_form_of(again.kernel, *again.form, again.graph));
  CHECK(&one.on(kA100).work() == &again.on(kA100).work());
}

TEST_CASE("the first rung that takes a product is its kind") {
  CHECK(Planned(linear(8, 1024, 1024)).on(kA100).kind() == KernelKind::kSkinnyGemm);
  CHECK(Planned(linear(1024, 1024, 1024)).on(kA100).kind() == KernelKind::kGemm);
  CHECK(Planned(linear(1024, 1024, 1024, "float64")).on(kA100).kind() == KernelKind::kContraction);
  CHECK(Planned(convolved("2")).on(kA100).kind() == KernelKind::kConvolution);
}

TEST_CASE("a plan says which unit multiplies, and takes a candidate by its name") {
  const Planned gemm(linear(4096, 4096, 4096));
  const KernelPlan by_warps = gemm.on(kA100).plan();
  CHECK(by_warps.schedule == Schedule{KernelKind::kGemm, MatrixUnit::kMma});
  REQUIRE(std::holds_alternative<GemmForm>(by_warps.detail));
  const std::vector<std::string>& names = by_warps.choice.candidates();
  REQUIRE(names.size() > 1);
  CHECK(name_of(std::get<GemmForm>(by_warps.detail).tiles) == names[0]);
  CHECK(name_of(std::get<GemmForm>(gemm.on(kA100).plan(names[1]).detail).tiles) == names[1]);
  CHECK(name_of(std::get<GemmForm>(gemm.on(kA100).plan("of another version").detail).tiles) == names[0]);
  const KernelPlan by_warpgroups = gemm.on(kH100).plan();
  CHECK(by_warpgroups.schedule == Schedule{KernelKind::kGemm, MatrixUnit::kWarpgroup});
  CHECK(std::holds_alternative<WarpgroupPlan>(by_warpgroups.detail));
}

TEST_CASE("a convolution whose positions need 64 bits is planned without tables of positions") {
  const Planned large(convolved("40000"));
  CHECK(large.on(kA100).kind() == KernelKind::kConvolution);
  const KernelPlan plan = large.on(kA100).plan();
  CHECK(plan.schedule.kind == KernelKind::kContraction);
  CHECK(plan.why_not_better == "positions of its gathered operands need 64 bits");
}

TEST_CASE("rows are planned as rows or as columns") {
  CHECK(Planned(softmax(128)).on(kA100).plan().schedule.kind == KernelKind::kRowReduction);
  const Planned columns(R"(model "m"
input x: float32[4096, 64]
y: float32[64] = sum(x, dim=[0])
return y
)");
  CHECK(columns.on(kA100).plan().schedule.kind == KernelKind::kColumnReduction);
}

TEST_CASE("a plan of elements, and what stores them where") {
  const Planned pointwise(R"(model "m"
input x: float32[64, 64]
y: float32[64, 64] = silu(x)
return y
)");
  const KernelPlan plan = pointwise.on(kA100).plan();
  CHECK(plan.schedule == Schedule{KernelKind::kPointwise});
  CHECK(!std::get<PointwisePlan>(plan.detail).windows);
  CHECK(finishes_elements(plan.schedule.kind));
  CHECK(!finishes_elements(KernelKind::kRowReduction));
  CHECK(name(Schedule{KernelKind::kConvolution, MatrixUnit::kWarpgroup}) == "convolution_wgmma");
}

}  // namespace fusec::test
