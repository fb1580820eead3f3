// The three written forms of a graph: model file, readable text, builder. Each must give back the same graph.
#include "ir/text.h"

#include <doctest/doctest.h>

#include <cmath>

#include "ir/builder.h"
#include "ir/error.h"
#include "ir/read.h"
#include "ir/several_errors.h"
#include "ir/verify.h"
#include "ir/write.h"
#include "support/corpus.h"

namespace fusec {
namespace {

const std::string kText = R"(model "a b"
symbol n min=1 max=64 multiple_of=4 hint=16
input x: float32[n, 8]
input "1": float32[n, 8]
constant w: float32[9] = [1.0, -0.5, "nan", "inf", 1e+30, 0.1, 0.0, 2.0, 3.0]
y: float32[n, 8] = custom.e(x, w, 2, 1.5, true, null, {2*n+1}, k=[1,2], s="q")
z.0: float32[n, 4], "z 1": int8[n//2] = custom.two(y, "1") as "node/z" pattern=opaque fuse=false
"return": float32[n, 8] = neg(y)
return z.0, y, x, "return"
alias y -> x
)";

}  // namespace

TEST_CASE("text reads back as the graph that it prints") {
  const Graph graph = parse_graph_text(kText);
  CHECK(graph_text(graph) == kText);
  CHECK(first_problem(graph) == "");
}

TEST_CASE("a graph reads back from the file that it writes") {
  const Graph graph = parse_graph_text(kText);
  for (const bool declare_types : {false, true}) {
    const Graph again = read_model_text(model_text(graph, declare_types), "again", "");
    CHECK(graph_text(again) == kText);
  }
}

TEST_CASE("every model of the corpus survives both forms") {
  for (const std::string& path : corpus_graphs(FUSEC_TESTS_DIR "/corpus/models")) {
    CAPTURE(path);
    const Graph graph = read_model(path);
    CHECK(first_problem(graph) == "");
    const std::string text = graph_text(graph);
    CHECK(graph_text(read_model_text(model_text(graph), path, graph.directory)) == text);
    CHECK(graph_text(parse_graph_text(text, OpTable::builtin(), graph.directory)) == text);
  }
}

TEST_CASE("comments and blanks are no statements") {
  const Graph graph =
      parse_graph_text("# a graph\n\ninput x: float32[2]   # two\n  y : float32[ 2 ]=neg( x )\nreturn y");
  CHECK(graph_text(graph) == "model \"model\"\ninput x: float32[2]\ny: float32[2] = neg(x)\nreturn y\n");
}

TEST_CASE("a node's types may be left out") {
  const Graph graph =
      parse_graph_text("input x: float32[4]\na, b: float32[2] = split(x, split_sizes=[2, 2]) as s\nreturn b");
  CHECK(graph_text(graph).find("a: float32[2], b: float32[2] = split(") != std::string::npos);
}

TEST_CASE("errors of a text tell the line") {
  const auto message = [](const char* text) -> std::string {
    try {
      parse_graph_text(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message("input x: float32[2]\ny float32[2] = neg(x)\n") ==
        "graph text: line 2, column 3: found \"float32[2] = neg(x)\", expected ':'");
  CHECK(message("input x: float32[2\n") == "graph text: line 1, column 19: found the end of the line, expected ','");
  CHECK(message("input x: float32[2]\ny: float32[3] = neg(x)\nreturn y\n") ==
        "graph text: line 2: a declared shape does not agree with inference: found [3], expected [2]");
  CHECK(message("input x: float32[2]\n\ny: float32[2] = neg(z)\nreturn y\n").starts_with("graph text: line 3: "));
  CHECK(message("input x: float33[2]\nreturn x\n").starts_with("graph text: line 1: unknown dtype"));
  CHECK(message("input x: float32[2]\nreturn\tx,\n  y\n").starts_with("graph text: line 2, column 10"));
  CHECK(message("input x: float32[2]\nreturn z\n").starts_with("graph text: line 2: undefined output"));
  CHECK(message("input x: float32[2]\ny: float32[2] = softmax(x, dim=+1)\nreturn y\n") ==
        "graph text: line 2, column 32: found \"+1)\", expected a value as JSON has it");
  CHECK(message("input x: float32[2]\ny = sigmoyd(x)\nreturn y\n").starts_with("graph text: line 2: unknown op"));
  try {
    parse_graph_text("input x: float32[2]\ny = relu(z)\nv = relu(w)\nreturn y\n", OpTable::builtin());
    FAIL("two undefined operands are taken");
  } catch (const SeveralErrors& errors) {
    REQUIRE(errors.all().size() == 2);
    CHECK(errors.all()[1].parts().line == 3);
    CHECK(errors.parts().hint.ends_with("1 more such error"));
  }
  CHECK(message("input x: float32[2]\n") ==
        "graph text#/outputs: a model without outputs: found an empty array, expected at least one value's name");
}

TEST_CASE("a model is read in either form") {
  for (const char* text :
       {"model \"m\"", "\n# a comment\n  input x: float32[2]", "symbol n max=4", "constant w: int8[2]"})
    CHECK(is_graph_text(text));
  for (const char* text :
       {"", "{\"fusec\": 1}", " \n[1]", "models", "model", "y: float32[2] = neg(x)", "# model x", "\"model\" x"})
    CHECK(!is_graph_text(text));
  const Graph graph = read_model_text(kText, "m.ir", "weights");
  CHECK(graph_text(graph) == kText);
  CHECK(graph.file == "m.ir");
  CHECK(graph.directory == "weights");
}

TEST_CASE("the builder infers types and makes names") {
  GraphBuilder b("built");
  const Dim n = b.symbol("n", {.max = 64});
  const auto x = b.input("x", DType::kBFloat16, {n, 8});
  const auto s = b.op("sigmoid", {x});
  const auto y = b.op("mul", {x, s});
  const auto z = b.op("mul", {y, 2.0}, {}, "twice");
  const auto t = b.op("sum", {z}, {{"dim", -1}, {"keepdim", true}});
  b.output(t);
  b.output(b.op("mul", {z, z}));
  CHECK(graph_text(b.finish()) == R"(model "built"
symbol n min=1 max=64 multiple_of=1 hint=64
input x: bfloat16[n, 8]
sigmoid: bfloat16[n, 8] = sigmoid(x)
mul: bfloat16[n, 8] = mul(x, sigmoid)
twice: bfloat16[n, 8] = mul(mul, 2.0)
sum: bfloat16[n, 1] = sum(twice, dim=[-1], keepdim=true)
mul_1: bfloat16[n, 8] = mul(twice, twice)
return sum, mul_1
)");
}

TEST_CASE("a weak infinity becomes a 0-d constant") {
  GraphBuilder b;
  const auto x = b.input("x", DType::kBFloat16, {8});
  b.output(b.op("maximum", {x, -HUGE_VAL}));
  CHECK(graph_text(b.finish()) == R"(model "model"
input x: bfloat16[8]
constant infinity: float32[] = ["-inf"]
maximum: bfloat16[8] = maximum(x, infinity)
return maximum
)");
}

TEST_CASE("the builder's errors are errors of usage") {
  GraphBuilder b;
  const auto x = b.input("x", DType::kFloat32, {8});
  const auto message = [](const auto& f) -> std::string {
    try {
      f();
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kUsage);
      return error.what();
    }
    return "";
  };
  CHECK(message([&] { b.op("sofmax", {x}); }) ==
        "unknown op: found \"sofmax\", expected an op of the table; custom() takes others (hint: did you mean "
        "\"softmax\"?)");
  CHECK(message([&] {
          b.op("neg", {x, x});
        }) == "node \"neg\", inputs: wrong number of operands of neg: found 2, expected 1 (x)");
  CHECK(message([&] {
          b.op("sum", {x}, {{"dims", 0}});
        }) ==
        "sum, attrs/dims: unknown attribute of sum: found \"dims\", expected one of dim, keepdim (hint: did you mean "
        "\"dim\"?)");
  CHECK(message([&] { b.input("x", DType::kFloat32, {}); }) == "a value of this name exists already: found \"x\"");
  CHECK(message([&] { b.finish(); }) == "the graph has no outputs");
}

}  // namespace fusec
