// The verifier names what a pass broke. Each case breaks one thing in a sound graph.
#include "ir/verify.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "ir/error.h"
#include "ir/text.h"

namespace fusec {
namespace {

constexpr const char* kSound = R"(symbol n min=1 max=64
input x: float32[n, 8]
input y: float32[n, 8]
a: float32[n, 8] = neg(x)
b: float32[n, 8] = add(a, y)
s.0: float32[n, 4], s.1: float32[n, 4] = split(b, split_sizes=[4, 4], dim=1) as s
return b, s.1
alias b -> y
)";

std::string problem_after(const std::function<void(Graph&)>& change) {
  Graph graph = parse_graph_text(kSound);
  change(graph);
  return first_problem(graph);
}

}  // namespace

TEST_CASE("a sound graph has no problem") {
  CHECK(problem_after([](Graph&) {}) == "");
}

TEST_CASE("the verifier finds what a pass broke") {
  CHECK(problem_after([](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); }) ==
        "value \"a\" is not the result of node \"b\" that it says it is");
  CHECK(problem_after([](Graph& g) { g.nodes[1].inputs[0] = 999; }) == "node \"b\" uses value 999, which is not there");
  CHECK(problem_after([](Graph& g) { g.nodes[0].inputs[0] = g.outputs[0]; }) ==
        "node \"a\" uses \"b\" before node \"b\" produces it");
  CHECK(problem_after([](Graph& g) { g.nodes[1].name = "a"; }) == "two nodes are called \"a\"");
  CHECK(problem_after([](Graph& g) { g.nodes[1].inputs.pop_back(); }) ==
        "node \"b\": inputs: wrong number of operands of add: found 1, expected 2 (a, b)");
  CHECK(problem_after([](Graph& g) { g.nodes[0].op = g.table().find("logical_not"); }) ==
        "result 0 of node \"a\" is bool[n, 8], not float32[n, 8]");
  CHECK(problem_after([](Graph& g) { g.nodes[2].attributes = 0; }) == "node \"s\": attribute split_sizes is missing");
  CHECK(problem_after([](Graph& g) { g.nodes[0].attributes = g.nodes[2].attributes; }) ==
        "node \"a\": neg has no attribute \"dim\"");
  CHECK(problem_after([](Graph& g) { g.outputs.clear(); }) == "the graph has no outputs");
  CHECK(problem_after([](Graph& g) { g.outputs[0] = 77; }) == "the graph's output uses value 77, which is not there");
  CHECK(problem_after([](Graph& g) { g.nodes.pop_back(); }) ==
        "the graph's output uses \"s.1\", which no node produces");
  CHECK(problem_after([](Graph& g) { g.aliases[0].input = g.outputs[0]; }) == "an alias of \"b\" names no input");
  CHECK(problem_after([](Graph& g) {
          g.aliases.push_back({g.find_value("a"), g.inputs[1]});
        }) == "no order of execution allows the aliases");
  CHECK(problem_after([](Graph& g) { g.add_symbol({.name = "m"}); }) == "no input determines symbol \"m\"");
}

TEST_CASE("the pass is named") {
  Graph graph = parse_graph_text(kSound);
  CHECK_NOTHROW(verify(graph, "fold-constants"));
  graph.outputs.clear();
  CHECK_THROWS_WITH_AS(verify(graph, "fold-constants"), "after fold-constants: the graph has no outputs",
                       InternalError);
}

}  // namespace fusec
