// What is worth preparing: marks on nodes before the partitioner runs, and on groups after it.
#include "transforms/prepare.h"

#include <doctest/doctest.h>

#include "analysis/annotate.h"
#include "ir/read.h"
#include "support/canonicalized.h"
#include "transforms/fuse.h"
#include "transforms/verify_plan.h"

using namespace fusec;

namespace {

Graph model(const std::string& constants, const std::string& nodes, const std::string& outputs,
            const std::string& symbols = "{\"n\": {\"max\": 64}}") {
  return read_model_text(R"({"fusec": 1, "symbols": )" + symbols + R"(, "inputs": [{"name": "x", "dtype": "float32",
      "shape": ["n", 64]}], "constants": [)" +
                             constants + R"(], "nodes": [)" + nodes + R"(], "outputs": )" + outputs + "}",
                         "m.json", ".");
}

std::string constant(const std::string& name, const std::string& dtype, const std::string& shape) {
  return R"({"name": ")" + name + R"(", "dtype": ")" + dtype + R"(", "shape": )" + shape + "}";
}

std::string node(const std::string& name, const std::string& op, const std::string& inputs,
                 const std::string& attributes = "{}") {
  return R"({"name": ")" + name + R"(", "op": ")" + op + R"(", "inputs": )" + inputs + R"(, "attrs": )" + attributes +
         "}";
}

// Names of the nodes that are marked.
std::string marked(Graph graph) {
  CanonicalGraph canonical = canonicalized(std::move(graph));
  mark_prepared(canonical);
  std::string names;
  for (const Node& n : canonical.graph.nodes)
    if (n.prepared) names += (names.empty() ? "" : " ") + n.name;
  return names;
}

// Names of the nodes of prepared groups, where groups are the three phases'.
std::string grouped(Graph graph) {
  CanonicalGraph canonical = canonicalized(std::move(graph));
  mark_prepared(canonical);
  const Graph& g = canonical.graph;
  const std::vector<OpPattern> kinds = annotate(g, PatternSource::kFormula);
  FusionPlan plan = fuse(g, kinds, {});
  prepare_groups(g, plan);
  verify_plan(g, kinds, plan);
  std::string names;
  for (const FusionGroup& group : plan.groups)
    if (group.prepared)
      for (const NodeId n : group.nodes) names += (names.empty() ? "" : " ") + g.nodes[n].name;
  return names;
}

const std::string kLinear = node("y", "linear", R"(["x", "c"])");

}  // namespace

TEST_SUITE("prepare") {
  TEST_CASE("a cast to fewer bytes is marked, one to more is left to its reader") {
    CHECK(marked(model(constant("w", "float64", "[8, 64]"),
                       node("c", "cast", R"(["w"])", R"({"dtype": "float32"})") + "," + kLinear, R"(["y"])")) == "c");
    CHECK(marked(model(constant("w", "float16", "[8, 64]"),
                       node("c", "cast", R"(["w"])", R"({"dtype": "float32"})") + "," + kLinear, R"(["y"])")) == "");
  }

  TEST_CASE("a launch each run that depends on constants alone follows its group") {
    CHECK(grouped(model(constant("w", "float16", "[8, 64]"),
                        node("c", "cast", R"(["w"])", R"({"dtype": "float32"})") + "," + kLinear, R"(["y"])")) == "c");
  }

  TEST_CASE("movement is index arithmetic, joining is not") {
    const std::string wt = constant("w", "float32", "[64, 8]");
    CHECK(marked(model(wt, node("c", "transpose", R"(["w"])", R"({"dim0": 0, "dim1": 1})") + "," + kLinear,
                       R"(["y"])")) == "");
    CHECK(marked(model(constant("v", "float32", "[4, 64]") + "," + constant("w", "float32", "[4, 64]"),
                       node("c", "concat", R"(["v", "w"])", R"({"dim": 0})") + "," + kLinear, R"(["y"])")) == "c");
  }

  TEST_CASE("views on the way to what is prepared go along") {
    CHECK(grouped(model(constant("w", "float32", "[512]"),
                        node("r", "reshape", R"(["w"])", R"({"shape": [8, 64]})") + "," +
                            node("c", "softmax", R"(["r"])", R"({"dim": 1})") + "," + kLinear,
                        R"(["y"])")) == "r c");
  }

  TEST_CASE("what an output shows, a symbol decides or the user keeps apart stays") {
    const std::string w = constant("w", "float32", "[8, 64]");
    const std::string softmax = node("c", "softmax", R"(["w"])", R"({"dim": 1})");
    CHECK(grouped(model(w, softmax + "," + kLinear, R"(["y"])")) == "c");
    CHECK(grouped(model(w, softmax + "," + kLinear, R"(["y", "c"])")) == "");
    const std::string apart = R"({"name": "c", "op": "softmax", "inputs": ["w"], "attrs": {"dim": 1}, "fuse": false})";
    CHECK(grouped(model(w, apart + "," + kLinear, R"(["y"])")) == "");
    const std::string rows = node("s", "softmax", R"(["w"])", R"({"dim": 1})") + "," +
                             node("c", "slice", R"(["s"])", R"({"dim": 0, "start": 0, "end": "n"})") + "," +
                             node("y", "mul", R"(["x", "c"])");
    CHECK(grouped(model(constant("w", "float32", "[64, 64]"), rows, R"(["y"])")) == "s");
  }

  TEST_CASE("memory is bounded by what the constants take") {
    // A table of 4096 x 4096 made of two vectors: 64 MiB of 32 KiB.
    const std::string nodes = node("t", "matmul", R"(["a", "b"])") + "," +
                              node("c", "softmax", R"(["t"])", R"({"dim": 1})") + "," +
                              node("p", "matmul", R"(["c", "d"])") + "," + node("y", "mul", R"(["x", "p"])");
    CHECK(grouped(model(constant("a", "float32", "[4096, 1]") + "," + constant("b", "float32", "[1, 4096]") + "," +
                            constant("d", "float32", "[4096, 64]"),
                        nodes, R"(["y"])", R"({"n": {"min": 4096, "max": 4096}})")) == "");
  }

  TEST_CASE("a plan that prepares what depends on an input is illegal") {
    const Graph graph =
        model(constant("w", "float32", "[8, 64]"), node("c", "exp", R"(["w"])") + "," + kLinear, R"(["y"])");
    const std::vector<OpPattern> kinds = annotate(graph, PatternSource::kFormula);
    FusionPlan plan = fuse(graph, kinds, {});
    REQUIRE(plan.groups.size() == 2);
    plan.groups[0].prepared = true;
    CHECK(!find_plan_fault(graph, kinds, plan));
    plan.groups[1].prepared = true;
    const auto fault = find_plan_fault(graph, kinds, plan);
    REQUIRE(fault);
    CHECK(fault->what.find("\"y\"") != std::string::npos);
  }
}
