// What lowering fuses and what it stores, how kernels are scheduled, and that no name of a model acts as code.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "codegen/launch/lower_plan.h"
#include "codegen/nvrtc/nvrtc.h"
#include "codegen/prelude/prelude.h"
#include "ir/fusion_plan.h"
#include "ir/read.h"

using namespace fusec;

namespace {

Graph model(const std::string& inputs, const std::string& nodes, const std::string& outputs,
            const std::string& symbols = "{}") {
  return read_model_text(R"({"fusec": 1, "symbols": )" + symbols + R"(, "inputs": [)" + inputs + R"(], "nodes": [)" +
                             nodes + R"(], "outputs": [)" + outputs + "]}",
                         "test.json", ".");
}

LoweredPlan lower_together(const Graph& graph, const EmitOptions& options = {}) {
  FusionPlan plan;
  plan.groups.emplace_back();
  for (NodeId n = 0; n < graph.nodes.size(); ++n) plan.groups[0].nodes.push_back(n);
  index_groups(graph, plan);
  return lower_plan(graph, plan, Target{}, options);
}

std::vector<std::string> schedules_of(const LoweredPlan& plan) {
  std::vector<std::string> names;
  for (const LoweredStep& step : plan.groups[0].steps)
    names.push_back(step.kind == LoweredStep::Kind::kKernel ? name(plan.kernels[step.kernel].schedule) : "copy");
  return names;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// All kernels as one file; compiled where there is NVRTC.
std::string compiled(const LoweredPlan& plan) {
  std::set<std::string> parts;
  for (const KernelSource& kernel : plan.kernels) parts.insert(kernel.prelude.begin(), kernel.prelude.end());
  std::string text = "namespace {\n" + prelude_text(parts) + "}\n";
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    std::string kernel = plan.kernels[k].text;
    for (std::size_t at = kernel.find("@KERNEL@"); at != std::string::npos; at = kernel.find("@KERNEL@", at))
      kernel.replace(at, 8, "kernel_" + std::to_string(k));
    text += kernel;
  }
  std::string why;
  if (const auto nvrtc = Nvrtc::load(&why))
    CHECK_NOTHROW(nvrtc->compile(text, "test.cu", "sm_80"));
  else
    MESSAGE("not compiled: ", why);
  return text;
}

}  // namespace

TEST_CASE("an elementwise chain is one kernel without divisions, eight elements a thread") {
  const Graph g = model(R"({"name": "x", "dtype": "bfloat16", "shape": [64, 128]},
                           {"name": "y", "dtype": "bfloat16", "shape": [64, 128]})",
                        R"({"name": "act", "op": "silu", "inputs": ["x"]},
                           {"name": "h", "op": "mul", "inputs": ["act", "y"]})",
                        R"("h")");
  const LoweredPlan plan = lower_together(g);
  CHECK(schedules_of(plan) == std::vector<std::string>{"pointwise"});
  const std::string text = plan.kernels[0].text;
  CHECK(has(text, "load_words<4>((const uint4*)x"));
  CHECK(has(text, "store_words((uint4*)h"));
  CHECK(has(text, "const float act = "));
  CHECK_FALSE(has(text, " % "));
  CHECK(plan.kernels[0].grid[0] == IndexExpr(8));  // of 128 threads: there is little to do
  compiled(plan);
}

TEST_CASE("labels are compared with classes as ints, and classes are not loaded") {
  const Graph g = model(R"({"name": "x", "dtype": "float32", "shape": [64, 1000]},
                           {"name": "t", "dtype": "int64", "shape": [64, 1]})",
                        R"({"name": "classes", "op": "arange", "inputs": [], "attrs": {"end": 1000, "dtype": "int64"}},
                           {"name": "hot", "op": "eq", "inputs": ["t", "classes"]},
                           {"name": "y", "op": "where", "inputs": ["hot", "x", 0.0]})",
                        R"("y")");
  const LoweredPlan plan = lower_together(g);
  const std::string text = plan.kernels[0].text;
  CHECK(has(text, "(int)min(max("));
  CHECK(has(text, "1000ll)"));
  CHECK_FALSE(has(text, "classes,"));
  compiled(plan);
}

TEST_CASE("softmax stays whole with what follows it, and is stored before a product") {
  const std::string x =
      R"({"name": "x", "dtype": "float32", "shape": [32, 64]}, {"name": "v", "dtype": "float32", "shape": [64, 48]})";
  const Graph scaled = model(x, R"({"name": "p", "op": "softmax", "inputs": ["x"], "attrs": {"dim": -1}},
                                   {"name": "s", "op": "mul", "inputs": ["p", 2.0]})",
                             R"("s")");
  CHECK(schedules_of(lower_together(scaled)) == std::vector<std::string>{"row_reduction"});
  const Graph product = model(x, R"({"name": "p", "op": "softmax", "inputs": ["x"], "attrs": {"dim": -1}},
                                    {"name": "o", "op": "matmul", "inputs": ["p", "v"]},
                                    {"name": "r", "op": "relu", "inputs": ["o"]})",
                              R"("r")");
  const LoweredPlan plan = lower_together(product);
  REQUIRE(plan.groups[0].steps.size() == 2);
  CHECK(plan.kernels[plan.groups[0].steps[0].kernel].schedule.kind == KernelKind::kRowReduction);
  compiled(plan);
}

TEST_CASE("two products over one space are one kernel, with what stands on them") {
  const Graph g = model(
      R"({"name": "x", "dtype": "float16", "shape": [32, 64]}, {"name": "a", "dtype": "float16", "shape": [48, 64]},
                           {"name": "b", "dtype": "float16", "shape": [48, 64]})",
      R"({"name": "gate", "op": "linear", "inputs": ["x", "a"]}, {"name": "up", "op": "linear", "inputs": ["x", "b"]},
                           {"name": "act", "op": "silu", "inputs": ["gate"]}, {"name": "h", "op": "mul", "inputs": ["act", "up"]})",
      R"("h")");
  CHECK(schedules_of(lower_together(g)) == std::vector<std::string>{"gemm_mma"});
}

TEST_CASE("values over one space that share a load are one kernel with several outputs") {
  const Graph g =
      model(R"({"name": "x", "dtype": "float32", "shape": [1000]})",
            R"({"name": "a", "op": "exp", "inputs": ["x"]}, {"name": "b", "op": "add", "inputs": ["a", 1.0]},
                           {"name": "c", "op": "sin", "inputs": ["x"]})",
            R"("a", "b", "c")");
  const LoweredPlan plan = lower_together(g);
  CHECK(plan.groups[0].steps.size() == 1);
  CHECK(plan.groups[0].steps[0].writes.size() == 3);
  compiled(plan);
}

TEST_CASE("a view of what is in memory costs nothing, except as a second output") {
  const Graph g = model(R"({"name": "x", "dtype": "float32", "shape": [4, 6]})",
                        R"({"name": "e", "op": "exp", "inputs": ["x"]},
                           {"name": "f", "op": "reshape", "inputs": ["e"], "attrs": {"shape": [24]}},
                           {"name": "v", "op": "reshape", "inputs": ["x"], "attrs": {"shape": [24]}})",
                        R"("e", "f", "v")");
  const LoweredPlan plan = lower_together(g);
  CHECK(schedules_of(plan) == std::vector<std::string>{"copy", "pointwise", "copy"});
  const Graph alone = model(R"({"name": "x", "dtype": "float32", "shape": [4, 6]})",
                            R"({"name": "e", "op": "cumsum", "inputs": ["x"], "attrs": {"dim": 1}},
                               {"name": "f", "op": "reshape", "inputs": ["e"], "attrs": {"shape": [24]}})",
                            R"("f")");
  const LoweredPlan aliased = lower_together(alone);
  CHECK(aliased.storage_of[alone.find_value("f")] == aliased.storage_of[alone.find_value("e")]);
}

TEST_CASE("repeated layers share their kernels, with values of their own") {
  std::string nodes;
  for (int i = 0; i < 6; ++i) {
    const std::string from = i == 0 ? "x" : "h" + std::to_string(i - 1);
    nodes += std::string(i ? "," : "") + R"({"name": "s)" + std::to_string(i) + R"(", "op": "softmax", "inputs": [")" +
             from + R"("], "attrs": {"dim": 1}}, {"name": "h)" + std::to_string(i) +
             R"(", "op": "softmax", "inputs": ["s)" + std::to_string(i) + R"("], "attrs": {"dim": 0}})";
  }
  const Graph g = model(R"({"name": "x", "dtype": "float32", "shape": [64, 64]})", nodes, R"("h5")");
  const LoweredPlan plan = lower_together(g);
  CHECK(plan.groups[0].steps.size() == 12);
  CHECK(plan.kernels.size() == 2);
  CHECK(plan.groups[0].steps[11].writes == std::vector<ValueId>{g.find_value("h5")});
}

TEST_CASE("an expression that would double with every node is cut") {
  std::string nodes;
  for (int i = 0; i < 40; ++i) {
    const std::string from = i == 0 ? "x" : "a" + std::to_string(i - 1), n = std::to_string(i);
    nodes += std::string(i ? "," : "") + R"({"name": "r)" + n + R"(", "op": "roll", "inputs": [")" + from +
             R"("], "attrs": {"shifts": [1], "dims": [0]}}, {"name": "a)" + n + R"(", "op": "add", "inputs": [")" +
             from + R"(", "r)" + n + R"("]})";
  }
  const Graph g = model(R"({"name": "x", "dtype": "float32", "shape": [100]})", nodes, R"("a39")");
  const LoweredPlan plan = lower_together(g);
  CHECK(plan.groups[0].steps.size() >= 2);
  CHECK(plan.groups[0].steps.size() <= 40);
}

TEST_CASE("one kernel serves all values of a symbol, and empty tensors none") {
  const Graph g = model(
      R"({"name": "x", "dtype": "float16", "shape": ["n", 64]})",
      R"({"name": "y", "op": "gelu", "inputs": ["x"]}, {"name": "z", "op": "full", "inputs": [], "attrs": {"shape": [0, 3], "value": 1.0, "dtype": "float32"}})",
      R"("y", "z")", R"({"n": {"min": 0, "max": 1000000}})");
  const LoweredPlan plan = lower_together(g);
  REQUIRE(plan.groups[0].steps.size() == 1);
  CHECK(has(plan.kernels[0].text, "int dim_n"));
  CHECK(has(plan.kernels[0].text, "load_words<4>"));
  compiled(plan);
}

TEST_CASE("sums over no element have a kernel, whatever lies beside them") {
  for (const char* shape : {"[4, 65, 0]", "[4, 0, 65]", "[4, 0, 0]", "[100, 65, 0]"})
    for (const char* dim : {"[1, 2]", "[0, 2]", "[2]", "[1]"}) {
      const Graph g =
          model(fmt::format(R"({{"name": "x", "dtype": "float32", "shape": {}}})", shape),
                fmt::format(R"({{"name": "y", "op": "sum", "inputs": ["x"], "attrs": {{"dim": {}}}}})", dim), R"("y")");
      CHECK(lower_together(g).groups.size() == 1);
    }
}

TEST_CASE("names are text, not code") {
  const std::string longest(1 << 20, 'n');
  for (const std::string& name :
       {std::string("*/ int main() { \\\" ?"
                    "?/ \\\\ "),
        std::string("a\\nb\\n#define float int\\n"), std::string("float"), std::string("threadIdx"),
        std::string("\\u00e9\\u4e2d"), std::string("2x"), std::string("to_bf16"), longest, std::string("INT_MAX"),
        std::string("//\\\\"), std::string("R\\\"x("), std::string("load_words")}) {
    const Graph g = model(R"({"name": ")" + name + R"(", "dtype": "bfloat16", "shape": [40]})",
                          R"({"name": "n)" + name + R"(", "op": "exp", "inputs": [")" + name + R"("]},
                             {"name": "m)" +
                              name + R"(", "op": "sum", "inputs": ["n)" + name + R"("]})",
                          R"("n)" + name + R"(", "m)" + name + R"(")");
    const std::string text = compiled(lower_together(g));
    CHECK(text.size() < 20000);
    CHECK(std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  }
}

TEST_CASE("with rounded intermediates nothing contracts") {
  const Graph g =
      model(R"({"name": "x", "dtype": "float16", "shape": [64]}, {"name": "y", "dtype": "float16", "shape": [64]})",
            R"({"name": "p", "op": "mul", "inputs": ["x", "y"]}, {"name": "s", "op": "add", "inputs": ["p", "y"]})",
            R"("s")");
  const std::string exact = lower_together(g, {.round_intermediates = true}).kernels[0].text;
  CHECK(has(exact, "__fmul_rn("));
  CHECK(has(exact, "__fadd_rn("));
  CHECK(has(exact, "from_fp16(to_fp16("));
  const std::string plain = lower_together(g).kernels[0].text;
  CHECK_FALSE(has(plain, "_rn("));
}

TEST_CASE("a large tensor reduced to one value takes two kernels, beside one of which rows are reduced") {
  const Graph g = model(
      R"({"name": "x", "dtype": "float32", "shape": [1024, 4096]})",
      R"({"name": "s", "op": "sum", "inputs": ["x"]}, {"name": "m", "op": "amax", "inputs": ["x"], "attrs": {"dim": 1}})",
      R"("s", "m")");
  const LoweredPlan plan = lower_together(g);
  REQUIRE(plan.groups[0].steps.size() == 2);
  REQUIRE(plan.scratch_bytes.size() == 1);
  const auto workspace = [](const LoweredStep& step) {
    return std::any_of(step.parameters.begin(), step.parameters.end(), [](const KernelParameter& p) {
      return p.kind == KernelParameter::Kind::kWorkspace && p.scratch == 0;
    });
  };
  CHECK(workspace(plan.groups[0].steps[0]));
  CHECK(workspace(plan.groups[0].steps[1]));
  compiled(plan);
}

TEST_CASE("large tensors reduced to values of their own share two kernels and the memory between them") {
  const Graph g = model(
      R"({"name": "x", "dtype": "float32", "shape": [1024, 4096]}, {"name": "y", "dtype": "float32", "shape": [4096, 4096]},
         {"name": "z", "dtype": "float32", "shape": [512, 4096]})",
      R"({"name": "a", "op": "sum", "inputs": ["x"]}, {"name": "b", "op": "sum", "inputs": ["y"]},
         {"name": "c", "op": "sum", "inputs": ["z"]})",
      R"("a", "b", "c")");
  const LoweredPlan plan = lower_together(g);
  REQUIRE(plan.groups[0].steps.size() == 2);
  CHECK(plan.scratch_bytes.size() == 1);
  CHECK(plan.groups[0].steps[1].writes.size() == 3);
  compiled(plan);
}

TEST_CASE("lowering: groups of one signature share kernels, with their own tensors") {
  const Graph graph =
      model(R"({"name": "x", "dtype": "float32", "shape": [64]}, {"name": "y", "dtype": "float32", "shape": [64]})",
            R"({"name": "a", "op": "relu", "inputs": ["x"]}, {"name": "b", "op": "add", "inputs": ["a", "y"]},
         {"name": "c", "op": "relu", "inputs": ["b"]}, {"name": "d", "op": "add", "inputs": ["c", "x"]},
         {"name": "e", "op": "relu", "inputs": ["d"]}, {"name": "f", "op": "add", "inputs": ["e", "e"]})",
            R"("d", "f")");
  FusionPlan plan;
  for (NodeId n = 0; n < graph.nodes.size(); n += 2) plan.groups.emplace_back().nodes = {n, n + 1};
  index_groups(graph, plan);
  const LoweredPlan lowered = lower_plan(graph, plan, Target{}, {});
  CHECK(lowered.kernels.size() == 2);  // f reads e twice
  const auto step = [&](std::size_t g) { return lowered.groups.at(g).steps.at(0); };
  CHECK(step(0).kernel == step(1).kernel);
  CHECK(step(1).reads == std::vector{graph.nodes[1].first_output, graph.nodes[0].inputs[0]});
  CHECK(step(1).writes == std::vector{graph.nodes[3].first_output});
  CHECK(step(1).nodes == std::vector<NodeId>{2, 3});
}

// NVRTC would take the variable of a loop for the symbol without an error.
TEST_CASE("lowering: a symbol has no name of a local variable") {
  const Graph graph = model(
      R"({"name": "x", "dtype": "float32", "shape": ["e", "rows"]}, {"name": "y", "dtype": "float32", "shape": ["rows"]})",
      R"({"name": "z", "op": "add", "inputs": ["x", "y"]})", R"("z")", R"({"e": {}, "rows": {}})");
  const std::string text = compiled(lower_together(graph));
  CHECK(has(text, "const int dim_e"));
  CHECK(has(text, "const int rows"));
}
