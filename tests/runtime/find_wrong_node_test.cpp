// The node that a wrong output belongs to: with a defect planted into a kernel's text, it is named.
#include "runtime/find_wrong_node.h"

#include <doctest/doctest.h>

#include "support/built_model.h"
#include "support/check_lowered.h"

using namespace fusec;

namespace {

const char* const kModel = R"({
  "fusec": 1, "name": "verified",
  "inputs": [ { "name": "x", "dtype": "float32", "shape": [5, 64] } ],
  "nodes": [
    { "name": "scaled", "op": "mul", "inputs": ["x", 0.5] },
    { "name": "bent", "op": "tanh", "inputs": ["scaled"] },
    { "name": "grown", "op": "exp", "inputs": ["bent"] },
    { "name": "total", "op": "sum", "inputs": ["grown"], "attrs": { "dim": [1] } },
    { "name": "y", "op": "sqrt", "inputs": ["total"] }
  ],
  "outputs": ["y"] })";

// Runs on the emulator with `planted` in place of `original` in every kernel.
std::optional<WrongNode> search(const test::BuiltModel& model, const std::string& original,
                                const std::string& planted) {
  const auto nvrtc = Nvrtc::load();
  REQUIRE(nvrtc);
  const TensorMap tensors = random_tensors(model.graph, 3);
  std::size_t replaced = 0;
  const auto run = [&](const Graph& graph, const FusionPlan& plan) {
    LaunchPlan launch = build_launch_plan(graph, lower_plan(graph, plan, model.target, {}));
    CHECK(launch.prepare_steps.empty());  // what has become an output is made by the launch
    for (KernelSource& kernel : launch.kernels)
      for (std::size_t at = kernel.text.find(original); !original.empty() && at != std::string::npos;
           at = kernel.text.find(original, at + planted.size()), ++replaced)
        kernel.text.replace(at, original.size(), planted);
    const EmittedFile file = emit_file(graph, plan, launch, model.target, 1);
    const auto modules =
        compile_all(*nvrtc, file.units, model.target.arch, {1, default_cache_directory(), CubinUse::kProof});
    return run_on_emulator(graph, launch, parse_units(modules), file.unit_of, model.target, tensors, {}).outputs;
  };
  const auto wrong = find_wrong_node(model.graph, model.plan, tensors, std::nullopt, run);
  CHECK((original.empty() || replaced > 0));
  return wrong;
}

std::optional<WrongNode> search(bool together, const std::string& original, const std::string& planted) {
  return search(test::BuiltModel(kModel, together), original, planted);
}

}  // namespace

TEST_SUITE("find wrong node") {
  TEST_CASE("a planted wrong function is traced to its node") {
    if (!test::nvrtc_or_skip()) return;
    for (const bool together : {false, true}) {
      const auto wrong = search(together, "tanhf(", "sinhf(");
      REQUIRE(wrong);
      CHECK(wrong->node == "bent");
      CHECK(wrong->difference.output == "bent");
      CHECK(wrong->difference.index.size() == 2);
      CHECK(wrong->inside);
    }
    const auto last = search(true, "sqrtf(", "fabsf(");
    REQUIRE(last);
    CHECK(last->node == "y");
  }

  TEST_CASE("what is prepared is looked at, too") {
    if (!test::nvrtc_or_skip()) return;
    test::BuiltModel model(R"({
      "fusec": 1, "name": "prepared",
      "inputs": [ { "name": "x", "dtype": "float32", "shape": [5, 64] } ],
      "constants": [ { "name": "w", "dtype": "float32", "shape": [64] } ],
      "nodes": [
        { "name": "bent", "op": "tanh", "inputs": ["w"] },
        { "name": "y", "op": "add", "inputs": ["x", "bent"] }
      ],
      "outputs": ["y"] })");
    model.graph.nodes[0].prepared = true;
    model.plan.groups[0].prepared = true;
    const auto wrong = search(model, "tanhf(", "sinhf(");
    REQUIRE(wrong);
    CHECK(wrong->node == "bent");
  }

  TEST_CASE("where nothing is wrong, nothing is found") {
    if (!test::nvrtc_or_skip()) return;
    CHECK(!search(false, "", ""));
    CHECK(!search(true, "", ""));
  }
}
