// What is planned of a kernel is found once for each target and for the types of its tensors.
#include "schedule/plan_memory.h"

#include <doctest/doctest.h>

#include "ir/text.h"
#include "schedule/form_memory.h"
#include "schedule/lowering/lower_group.h"

namespace fusec::test {
namespace {

struct Count {
  int found = 0;
};

Graph softmax() {
  return parse_graph_text(R"(model "m"
input x: float32[64, 128]
y: float32[64, 128] = softmax(x, dim=1)
return y
)");
}

}  // namespace

TEST_CASE("plans are found once for a target and a graph's types") {
  const Graph graph = softmax();
  const std::vector<LoweredUnit> units = lower_group(graph, {0}, graph.outputs);
  REQUIRE(units.size() == 1);
  const Kernel& kernel = units[0].kernel;
  FormMemory forms;
  const PlanMemory& plans = forms.of(kernel)->plans;
  int times = 0;
  const auto find = [&] { return Count{++times}; };
  const Target other = target_for("sm_90a");
  CHECK(plans.of(kernel, graph, Target{}, find).found == 1);
  CHECK(plans.of(kernel, graph, Target{}, find).found == 1);
  CHECK(plans.of(kernel, graph, other, find).found == 2);
  // The same kernel, lowered again.
  const Graph again = softmax();
  const Kernel equal = lower_group(again, {0}, again.outputs).at(0).kernel;
  CHECK(forms.of(equal)->plans.of(equal, again, other, find).found == 2);
  CHECK(times == 2);
}

TEST_CASE("plans of different kinds do not meet") {
  const Graph graph = softmax();
  const Kernel kernel = lower_group(graph, {0}, graph.outputs).at(0).kernel;
  const PlanMemory plans;
  CHECK(plans.of(kernel, graph, [] { return 3; }) == 3);
  CHECK(plans.of(kernel, graph, [] { return 4; }) == 3);
  CHECK(plans.of(kernel, graph, [] { return 5.0; }) == 5.0);
}

}  // namespace fusec::test
