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
    { "name": "a", "op": "flip", "inputs": ["x"], "attrs": { "dims": [0] } },
    { "name": "b", "op": "flip", "inputs": ["a"], "attrs": { "dims": [0] } },
    { "name": "c", "op": "flip", "inputs": ["b"], "attrs": { "dims": [0] } },
    { "name": "y", "op": "flip", "inputs": ["c"], "attrs": { "dims": [0] } }
  ],
  "outputs": ["y"] })";

struct Chain : BuiltModel {
  Chain() : BuiltModel(kModel) {
    REQUIRE(launch.steps.size() == 4);
    REQUIRE(launch.arena.size() == 3);
    REQUIRE(launch.arena[0].offset == launch.arena[2].offset);
  }

  std::string run() const;
};

// Element by element: each takes over the place of what it reads. The same with a step that does not.
std::string elementwise(const std::string& second) {
  return R"({
    "fusec": 1, "name": "chain",
    "inputs": [ { "name": "x", "dtype": "float32", "shape": [8192] } ],
    "nodes": [
      { "name": "a", "op": "exp", "inputs": ["x"] },
      )" +
         second + R"(,
      { "name": "c", "op": "abs", "inputs": ["b"] },
      { "name": "y", "op": "sqrt", "inputs": ["c"] }
    ],
    "outputs": ["y"] })";
}
const std::string kNegated = R"({ "name": "b", "op": "neg", "inputs": ["a"] })";
const std::string kFlipped = R"({ "name": "b", "op": "flip", "inputs": ["a"], "attrs": { "dims": [0] } })";

std::string run(const BuiltModel& model, emulator::Options options = {}) {
  const auto nvrtc = Nvrtc::load();
  REQUIRE(nvrtc);
  const EmulatorResult result =
      run_on_emulator(model.graph, model.launch, parse_units(model.compile(*nvrtc)), model.file.unit_of, model.target,
                      random_tensors(model.graph, 1), options);
  return test::findings_of(result);
}

std::string Chain::run() const {
  return ::run(*this);
}

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

  TEST_CASE("what a sample's other blocks would have written is no finding") {
    if (!test::nvrtc_or_skip()) return;
    CHECK(::run(BuiltModel(elementwise(kFlipped)), {.sample_blocks = 1}) == "");
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

  TEST_CASE("values made element by element lie in the place of what dies") {
    if (!test::nvrtc_or_skip()) return;
    const BuiltModel model(elementwise(kNegated));
    REQUIRE(model.launch.arena.size() == 3);
    CHECK(model.launch.workspace_bytes.is(8192 * 4));
    CHECK(model.launch.live_bytes.is(8192 * 4));
    CHECK(model.launch.arena[1].in_place_of == 0);
    CHECK(model.launch.arena[2].in_place_of == 1);
    CHECK(model.file.text.find("const float* a,") != std::string::npos);  // no __restrict__
    CHECK(run(model) == "");
    const BuiltModel flipped(elementwise(kFlipped));
    CHECK(flipped.launch.arena[1].in_place_of == kNone);
    CHECK(flipped.launch.workspace_bytes.is(2 * 8192 * 4));
    CHECK(run(flipped) == "");
  }

  TEST_CASE("a place taken over by who reads elsewhere is a race") {
    if (!test::nvrtc_or_skip()) return;
    BuiltModel model(elementwise(kFlipped));
    model.launch.arena[1].in_place_of = 0;
    for (const std::size_t value : {1, 2}) model.launch.arena[value].offset = model.launch.arena[0].offset;
    for (LaunchStep& step : model.launch.steps)
      for (Argument& argument : step.arguments)
        if (argument.buffer.kind == BufferRef::Kind::kWorkspace) argument.buffer.offset = model.launch.arena[0].offset;
    CHECK(contains(run(model), "race"));
  }

  TEST_CASE("what a value leaves in the place that another takes over is not that one's") {
    if (!test::nvrtc_or_skip()) return;
    BuiltModel model(elementwise(kNegated));
    model.launch.steps[1].grid[0] = 1;  // b is written in part
    const std::string findings = run(model);
    CHECK(contains(findings, "unwritten_read"));
    CHECK(contains(findings, "[b]"));
  }

  TEST_CASE("an input that an output is written into, element by element, needs no copy") {
    if (!test::nvrtc_or_skip()) return;
    const auto updated = [](const std::string& op, const std::string& attributes) {
      return BuiltModel(R"({ "fusec": 1, "inputs": [ { "name": "s", "dtype": "float32", "shape": [8192] } ],
        "nodes": [ { "name": "next", "op": ")" +
                        op + R"(", "inputs": ["s"], "attrs": )" + attributes + R"( } ],
        "outputs": ["next"], "aliases": { "next": "s" } })");
    };
    const BuiltModel scaled = updated("square", "{}");
    CHECK(scaled.launch.steps.size() == 1);
    CHECK(run(scaled) == "");
    const BuiltModel flipped = updated("flip", R"({ "dims": [0] })");
    CHECK(flipped.launch.steps.size() == 2);
    CHECK(run(flipped) == "");
  }

  TEST_CASE("parts side by side update in place what no other part reads") {
    if (!test::nvrtc_or_skip()) return;
    const auto updated = [](const std::string& other) {
      return BuiltModel(R"({ "fusec": 1,
        "inputs": [ { "name": "s", "dtype": "float32", "shape": [4096] }, { "name": "t", "dtype": "float32", "shape": [8192] } ],
        "nodes": [ { "name": "first", "op": "square", "inputs": ["s"] },
                   { "name": "other", )" +
                            other + R"( } ],
        "outputs": ["first", "other"], "aliases": { "first": "s", "other": "t" } })",
                        true);
    };
    const BuiltModel apart = updated(R"("op": "exp", "inputs": ["t"])");
    CHECK(apart.launch.steps.size() == 1);
    CHECK(run(apart) == "");
    const BuiltModel shared = updated(R"("op": "concat", "inputs": ["s", "s"], "attrs": { "dim": 0 })");
    CHECK(shared.launch.steps.size() > 1);  // s is read by blocks of both
    CHECK(run(shared) == "");
  }
}
