// What the reader makes of valid models; tests/errors has the others.
#include "ir/read.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "ir/alias_order.h"
#include "ir/error.h"
#include "ir/symbol_solution.h"
#include "ir/text.h"

namespace fusec {
namespace {

// A model with inputs x: float32[4, 8] and i: int32[4] and these nodes (JSON) and outputs.
Graph graph_of(const std::string& nodes, const std::string& outputs, const std::string& more = "") {
  return read_model_text(fmt::format(R"({{"fusec":1,"inputs":[{{"name":"x","dtype":"float32","shape":[4,8]}},
      {{"name":"i","dtype":"int32","shape":[4]}}],"nodes":[{}],"outputs":[{}]{}}})",
                                     nodes, outputs, more),
                         "m.json", "");
}

std::string node_names(const Graph& graph) {
  std::string names;
  for (const Node& node : graph.nodes) names += (names.empty() ? "" : " ") + node.name;
  return names;
}

Graph with_symbols(const std::string& symbols, const std::string& shapes) {
  std::string inputs;
  std::size_t begin = 0, i = 0;
  while (begin <= shapes.size()) {  // shapes separated by |
    const std::size_t end = std::min(shapes.find('|', begin), shapes.size());
    inputs += fmt::format("{}{{\"name\":\"x{}\",\"dtype\":\"float32\",\"shape\":[{}]}}", i ? "," : "", i,
                          shapes.substr(begin, end - begin));
    begin = end + 1, ++i;
  }
  return read_model_text(
      fmt::format(R"({{"fusec":1,"symbols":{{{}}},"inputs":[{}],"nodes":[],"outputs":["x0"]}})", symbols, inputs),
      "m.json", "");
}

}  // namespace

TEST_CASE("among the ready nodes the earliest in the file comes first") {
  const Graph graph = graph_of(R"({"name":"d","op":"neg","inputs":["c"]}, {"name":"b","op":"exp","inputs":["a"]},
      {"name":"z","op":"sin","inputs":["x"]}, {"name":"c","op":"add","inputs":["a","b"]},
      {"name":"a","op":"abs","inputs":["x"]}, {"name":"w","op":"cos","inputs":["x"]})",
                               R"("d")");
  CHECK(node_names(graph) == "z a b c d w");
  CHECK(graph.nodes[0].file_position == 2);
  CHECK(graph.find_node("d") == 4);
  CHECK(graph.outputs.front() == graph.nodes[4].first_output);
}

TEST_CASE("results are called after the node, or numbered, or as the file says") {
  const Graph graph = graph_of(R"({"name":"s","op":"split","inputs":["x"],"attrs":{"split_sizes":[3,5],"dim":1}},
      {"name":"one","op":"chunk","inputs":["x"],"attrs":{"chunks":1}},
      {"name":"t","op":"topk","inputs":["s.1"],"attrs":{"k":2},"outputs":["v","at"]},
      {"name":"v2","op":"neg","inputs":["one.0"],"outputs":["q"]})",
                               R"("s.0","at","q")");
  CHECK(graph_text(graph) == R"(model "model"
input x: float32[4, 8]
input i: int32[4]
s.0: float32[4, 3], s.1: float32[4, 5] = split(x, dim=1, split_sizes=[3, 5]) as s
one.0: float32[4, 8] = chunk(x, chunks=1) as one
v: float32[4, 2], at: int64[4, 2] = topk(s.1, k=2) as t
q: float32[4, 8] = neg(one.0) as v2
return s.0, at, q
)");
}

TEST_CASE("a node's name may be another value's name") {
  const Graph graph = graph_of(R"({"name":"x","op":"neg","inputs":["x"],"outputs":["y"]})", R"("y","x","y")");
  CHECK(graph.outputs.size() == 3);
  CHECK(graph.nodes[0].inputs[0] == graph.inputs[0]);
}

TEST_CASE("numbers, booleans, absent operands and dimensions as operands") {
  const Graph graph = graph_of(R"({"name":"a","op":"add","inputs":["i",2]}, {"name":"b","op":"add","inputs":["i",2.0]},
      {"name":"c","op":"where","inputs":[true,"x",0]}, {"name":"d","op":"mul","inputs":["x",{"dim":"3"}]},
      {"name":"e","op":"rms_norm","inputs":["x",null],"attrs":{"normalized_shape":[8]}})",
                               R"("a","b","c","d","e")");
  CHECK(graph.tensor(graph.find_value("a")).dtype == DType::kInt32);
  CHECK(graph.tensor(graph.find_value("b")).dtype == DType::kFloat32);
  CHECK(graph.number(graph.nodes[2].inputs[0]) == Scalar::boolean(true));
  CHECK(graph.dim(graph.nodes[3].inputs[1]).is(3));
  CHECK(graph.nodes[4].inputs.size() == 1);  // an absent operand at the end is as good as left out
}

TEST_CASE("data is rounded to the dtype") {
  const auto element = [](const char* dtype, const char* data) {
    const Graph graph = read_model_text(
        fmt::format(R"({{"fusec":1,"inputs":[],"constants":[{{"name":"c","dtype":"{}","shape":[2],"data":[{},{}]}}],)"
                    R"("nodes":[],"outputs":["c"]}})",
                    dtype, data, dtype == std::string("bool") ? "true" : "1"),
        "m.json", "");
    return graph.constants[0].data->front();
  };
  CHECK(element("float32", "0.1").real == static_cast<double>(0.1f));
  CHECK(element("float16", "65519").real == 65504);
  CHECK(element("float8_e4m3fn", "464").real == 448);
  CHECK(element("float4_e2m1fn", "-6.9").real == -6);
  CHECK(std::isnan(element("float8_e8m0fnu", "\"nan\"").real));
  CHECK(element("float64", "\"-inf\"").real == -HUGE_VAL);
  CHECK(element("int8", "-128").integer == -128);
  CHECK(element("int8", "2.5").integer == 2);  // to the nearest, ties to even
  CHECK(element("uint64", "18446744073709551615").integer == -1);
  CHECK(element("uint4", "15").integer == 15);
  CHECK(element("bool", "false") == Scalar::boolean(false));
}

TEST_CASE("a symbol's defaults and hint") {
  const Graph graph = with_symbols(
      R"("a":{},"b":{"max":100,"multiple_of":8},"c":{"min":5000},"d":{"min":3,"max":3},"e":{"min":0,"hint":0})",
      R"("a","b","c","d","e")");
  CHECK(graph.symbols[0].min == 1);
  CHECK(graph.symbols[0].max == 2147483647);
  CHECK(graph.symbols[0].hint == 2048);
  CHECK(graph.symbols[1].hint == 96);
  CHECK(graph.symbols[2].hint == 5000);
  CHECK(graph.symbols[3].hint == 3);
  CHECK(graph.symbols[4].hint == 0);
}

TEST_CASE("symbols are solved from the inputs") {
  const auto steps = [](const std::string& symbols, const std::string& shapes) {
    const Graph graph = with_symbols(symbols, shapes);
    std::string text;
    for (const SymbolStep& step : solve_symbols(graph).steps)
      text += fmt::format("{}: {}*{}+{} is x{}[{}]; ", graph.symbols[step.symbol].name,
                          to_string(step.coefficient, graph.symbols), graph.symbols[step.symbol].name,
                          to_string(step.rest, graph.symbols), step.input, step.dimension);
    return text;
  };
  CHECK(steps(R"("n":{},"b":{})", R"("2*n+1","b"|"n")") == "b: 1*b+0 is x0[1]; n: 1*n+0 is x1[0]; ");
  CHECK(steps(R"("n":{})", R"(3,"2*n+1")") == "n: 2*n+1 is x0[1]; ");
  CHECK(steps(R"("n":{},"b":{})", R"("4*b*n+b"|"b")") == "b: 1*b+0 is x1[0]; n: 4*b*n+b is x0[0]; ");
  CHECK(steps(R"("n":{},"b":{})", R"("n-b"|"b+7")") == "b: 1*b+7 is x1[0]; n: 1*n+-b is x0[0]; ");
  // b may be 0, and then says nothing about n.
  CHECK_THROWS_AS(with_symbols(R"("n":{},"b":{"min":0})", R"("b*n","b")"), Error);
}

TEST_CASE("what the bounds leave open is checked at launch") {
  const Graph graph = read_model_text(
      R"({"fusec":1,"symbols":{"n":{},"m":{}},"inputs":[{"name":"x","dtype":"float32","shape":["n"]},
          {"name":"y","dtype":"float32","shape":["m"]}],
          "nodes":[{"name":"z","op":"my.op","inputs":["x"],"outputs":[{"name":"z","dtype":"int4","shape":["n-2"]}]}],
          "outputs":["z"]})",
      "m.json", "");
  REQUIRE(graph.checks.size() == 2);  // not negative, and even
  CHECK(to_string(graph.checks[0].left, graph.symbols) == "max(0, n-2)");
  CHECK(to_string(graph.checks[0].right, graph.symbols) == "n-2");
  CHECK(to_string(graph.checks[1].left, graph.symbols) == "n%2");
}

TEST_CASE("an input of a packed type asks at launch for an even last dimension") {
  const Graph graph = read_model_text(R"({"fusec": 1, "symbols": {"n": {"min": 1}, "m": {"min": 2, "multiple_of": 2}},
      "inputs": [{"name": "x", "dtype": "int4", "shape": [4, "n"]}, {"name": "y", "dtype": "int4", "shape": [4, "m"]}],
      "nodes": [], "outputs": ["x", "y"]})",
                                      "m.json", "");
  REQUIRE(graph.checks.size() == 1);
  CHECK(to_string(graph.checks[0].left, graph.symbols) == "n%2");
  CHECK(graph.checks[0].what == "the last dimension of input \"x\", which must be even");
}

TEST_CASE("aliases put other readers of the buffer before the writer") {
  const Graph graph = graph_of(R"({"name":"w","op":"neg","inputs":["x"]}, {"name":"r","op":"sum","inputs":["x"]},
      {"name":"q","op":"exp","inputs":["w"]})",
                               R"("w","r","q")", R"(,"aliases":{"w":"x"})");
  CHECK(node_names(graph) == "w r q");
  CHECK(order_for_aliases(graph, graph.aliases) == std::vector<NodeId>{1, 0, 2});
  CHECK(order_for_aliases(graph, {}) == std::vector<NodeId>{0, 1, 2});
}

TEST_CASE("custom attributes are kept as they are written") {
  const Graph graph =
      graph_of(R"({"name":"k","op":"my.op","inputs":[],"attrs":{"z":{"b":[1,2.0],"a":null},"symbol":"launch","n":3},
      "outputs":[{"name":"k","dtype":"bool","shape":[]}]})",
               R"("k")");
  const Attributes& attributes = graph.attributes(graph.nodes[0]);
  CHECK(attributes.text("symbol") == "launch");
  CHECK(std::get<RawJson>(*attributes.find("z")).text == R"({"a":null,"b":[1,2.0]})");
  CHECK(std::get<RawJson>(*attributes.find("n")).text == "3");
}

TEST_CASE("a model may be empty but for its outputs") {
  const Graph graph = graph_of("", R"("x","x","i")");
  CHECK(graph.nodes.empty());
  CHECK(graph.outputs == std::vector<ValueId>{graph.inputs[0], graph.inputs[0], graph.inputs[1]});
}

TEST_CASE("a file that is not there") {
  try {
    read_model("/nowhere/model.json");
    FAIL("read");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInput);
    CHECK(std::string(error.what()) == "/nowhere/model.json: cannot be read: found No such file or directory");
  }
  CHECK_THROWS_AS(read_model(FUSEC_TESTS_DIR), Error);
}

}  // namespace fusec
