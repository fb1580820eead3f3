// Values of the workspace are buffers of their own on the emulator: a plan that gives a kernel too little, too early or
// too late is noticed; the plan as made is not.
#include <doctest/doctest.h>

#include "ir/error.h"
#include "support/built_model.h"
#include "support/check_lowered.h"

using namespace fusec;
using test::BuiltModel;

namespace {

// a and b are alive together, c takes a's place.
const char* const kModel = R"({
  "fusec": 1, "name": "chain",
  "inputs": [ { "name": "x", "dtype": "float32", "shape": [64] } ],
  "nodes": [
    { "name": "a", "op": "exp", "inputs": ["x"] },
    { "name": "b", "op": "neg", "inputs": ["a"] },
    { "name": "c", "op": "abs", "inputs": ["b"] },
    { "name": "y", "op": "sqrt", "inputs": ["c"] }
  ],
  "outputs": ["y"] })";

struct Chain : BuiltModel {
  Chain() : BuiltModel(kModel) {
    REQUIRE(launch.steps.size() == 4);
    REQUIRE(launch.arena.size() == 3);
    REQUIRE(launch.arena[0].offset == launch.arena[2].offset);
  }

  std::string run() const {
    const auto nvrtc = Nvrtc::load();
    REQUIRE(nvrtc);
    return test::findings_of(run_on_emulator(graph, launch, parse_units(compile(*nvrtc)), file.unit_of, target,
                                             random_tensors(graph, 1), {}));
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("emulated arena") {
  TEST_CASE("the plan as made is clean") {
    if (!test::nvrtc_or_skip()) return;
    CHECK(Chain().run() == "");
  }

  TEST_CASE("a kernel that runs over the end of its value is out of bounds, though the arena goes on") {
    if (!test::nvrtc_or_skip()) return;
    Chain model;
    model.launch.arena[0].bytes = 252;
    const std::string findings = model.run();
    CHECK(contains(findings, "out_of_bounds"));
    CHECK(contains(findings, "[a]"));
  }

  TEST_CASE("what an earlier value left in the place is not this value's") {
    if (!test::nvrtc_or_skip()) return;
    Chain model;
    model.launch.steps.erase(model.launch.steps.begin() + 2);  // nobody computes c
    model.launch.arena[2].last_step = 2;
    const std::string findings = model.run();
    CHECK(contains(findings, "unwritten_read"));
    CHECK(contains(findings, "[c]"));
  }

  TEST_CASE("an output that nobody writes is told") {
    if (!test::nvrtc_or_skip()) return;
    Chain model;
    model.launch.steps.pop_back();
    CHECK(contains(model.run(), "nobody wrote byte 0 of output \"y\""));
  }

  TEST_CASE("a value used after its life, two in one place, one outside the workspace") {
    if (!test::nvrtc_or_skip()) return;
    Chain late;
    late.launch.arena[0].last_step = 0;
    CHECK_THROWS_AS(late.run(), InternalError);
    Chain together;
    together.launch.arena[1].offset = together.launch.arena[0].offset;
    CHECK_THROWS_AS(together.run(), InternalError);
    Chain outside;
    outside.launch.workspace_bytes = 256;
    CHECK_THROWS_AS(outside.run(), InternalError);
  }
}
