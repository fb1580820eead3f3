// Operators of a user's own: what is wrong with a description is an Error where it is given.
#include <doctest/doctest.h>

#include <functional>

#include "fusec/fusec.h"
#include "ir/graph.h"
#include "ir/op.h"
#include "ir/read.h"

using namespace fusec;

namespace {

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

OpDescription own_op(const std::string& expression, std::vector<std::string> operands = {"x"}) {
  return {.name = "my.x", .operands = std::move(operands), .pattern = "elemwise", .expression = expression};
}

void check_says(const std::string& message, const std::string& part) {
  CHECK_MESSAGE(message.find(part) != std::string::npos, "\"", message, "\" does not say \"", part, "\"");
}

// my.x of an input and what else is given.
Model model_of(const OpDescription& op, std::vector<ModelBuilder::Operand> more = {}) {
  ModelBuilder builder("own", Registry().with(op));
  std::vector<ModelBuilder::Operand> operands = {builder.input("x", "float32", {"n", 3})};
  operands.insert(operands.end(), more.begin(), more.end());
  builder.symbol("n");
  builder.output(builder.op("my.x", operands, {}, "y"));
  return builder.build();
}

}  // namespace

TEST_CASE("an expression that is wrong for any operands is an error where the op is registered") {
  const std::pair<const char*, const char*> wrong[] = {
      {"$0 +", "which ends too early"},
      {"$0 + $3", "\"$3\", expected $0 to $0"},
      {"foo($0)", "unknown function: found \"foo\""},
      {"$0 + $0; }", "\"; }\" at position 8"},
      {"max($0)", "wrong number of arguments"},
      {"\x01", "not an expression"},
      {"$99999999999999999999999", "the number of an operand"},
  };
  for (const auto& [expression, message] : wrong) {
    const std::string error = error_of([&, text = expression] { Registry().with(own_op(text)); });
    check_says(error, message);
    check_says(error, "the expression of my.x");
  }
  check_says(error_of([] { Registry().with(own_op("$0 \xff")); }), "the expression of op my.x is not UTF-8");
  check_says(error_of([] { Registry().with(own_op(std::string(5000, ' ') + "$0")); }), "too long");
  check_says(error_of([] { Registry().with(own_op(std::string(100, '(') + "$0" + std::string(100, ')'))); }), "nests");
  CHECK(error_of([] { Registry().with(own_op("$0 + $1 + $2", {"x", "y", "z?"})); }).empty());
  CHECK(error_of([] { Registry().with(own_op("$0 + $40", {"x", "more*"})); }).empty());
}

TEST_CASE("an expression that is wrong for the operands of one node is an error of the model") {
  const OpDescription op = own_op("$0 + $1", {"x", "y?"});
  CHECK(error_of([&] { compile(model_of(op, {2.0})); }).empty());
  const std::string error = error_of([&] { model_of(op); });
  check_says(error, "model#/nodes/0: the expression of my.x: the expression reads an operand");
  // A result that is smaller than what it is computed from.
  OpDescription narrow = own_op("$0");
  narrow.infer = [](const std::vector<TensorInfo>&) { return TensorInfo{"float32", {3}}; };
  check_says(error_of([&] { model_of(narrow); }), "model#/nodes/0/inputs/0: shape does not broadcast");
}

TEST_CASE("an expression's value is converted to the dtype of the result, also inside a kernel") {
  ModelBuilder builder("own", Registry().with(own_op("$0 * 0.5")));
  const auto x = builder.input("x", "int32", {8});
  builder.output(builder.op("mul", {builder.op("my.x", {x}), std::int64_t{4}}));
  const Compilation c = compile(builder.build());
  REQUIRE(c.kernels.size() == 1);
  check_says(c.kernels[0].source, "(int)(");
  OpDescription positive = own_op("$0 > 0");
  CHECK(error_of([&] { compile(model_of(positive)); }).empty());
  positive.infer = [](const std::vector<TensorInfo>& of) { return TensorInfo{"bool", of[0].shape}; };
  CHECK(error_of([&] { compile(model_of(positive)); }).empty());
}

TEST_CASE("no error of a type rule or formula passes the boundary of the library as it is") {
  OpDescription op = own_op("$0");
  op.infer = [](const std::vector<TensorInfo>&) -> TensorInfo { throw OpError{"inputs/0", "a rule", "1", "2", ""}; };
  check_says(error_of([&] { model_of(op); }), "model#/nodes/0/inputs/0: a rule: found 1, expected 2");
  for (const char* dtype : {"", "float33"}) {
    op.infer = [=](const std::vector<TensorInfo>& x) { return TensorInfo{dtype, x[0].shape}; };
    check_says(error_of([&] { model_of(op); }), "the dtype inferred for my.x");
  }
  for (const Dimension& wrong : {Dimension("n +"), Dimension("m"), Dimension(-3)}) {
    op.infer = [=](const std::vector<TensorInfo>&) { return TensorInfo{"float32", {wrong}}; };
    CHECK(!error_of([&] { model_of(op); }).empty());
  }
  // One that the reader does not meet.
  OpDef row;
  row.name = "my.late";
  row.operands = {"x"};
  row.infer = [](const OpCall& call) -> std::vector<ValueType> { return {call.tensor(0)}; };
  row.formula = [](Formula&, std::size_t, std::span<const IndexExpr>) -> ExprId {
    throw OpError{"attrs/a", "a rule that comes late", "1", "2", "hint"};
  };
  const OpTable table = OpTable::builtin().with(row);
  const Model model(std::make_shared<const Graph>(read_model_text(R"({
    "fusec": 1,
    "inputs": [{"name": "x", "dtype": "float32", "shape": [4]}],
    "nodes": [{"name": "y", "op": "my.late", "inputs": ["x"]}, {"name": "z", "op": "relu", "inputs": ["y"]}],
    "outputs": ["z"]})",
                                                                  "model", "", table)));
  const std::function<void()> calls[] = {
      [&] { compile(model); },
      [&] { partition(model); },
      [&] { annotate_patterns(model); },
  };
  for (const auto& call : calls)
    CHECK(error_of(call) == "attrs/a: a rule that comes late: found 1, expected 2 (hint: hint)");
}

TEST_CASE("a launcher's name is an identifier") {
  OpDescription op{.name = "my.x", .operands = {"x"}};
  for (const char* name : {"a b(); system", "9x", "my.x", "a-b", "int", "cudaMalloc", "system", "_x", "\xff"}) {
    op.launcher = name;
    check_says(error_of([&] { Registry().with(op); }), "the launcher's name of op my.x");
  }
  op.launcher = "launch_my_x";
  check_says(compile(model_of(op)).source, "launch_my_x(");
}

TEST_CASE("an op with neither launcher nor expression can be looked at, not compiled") {
  for (const char* pattern : {"opaque", "elemwise"}) {
    const Model model = model_of({.name = "my.x", .operands = {"x"}, .pattern = pattern});
    CHECK(annotate_patterns(model) == std::vector<std::string>{pattern});
    CHECK(partition(model).size() == 1);
    const std::string error = error_of([&] { compile(model); });
    check_says(error, "model#/nodes/0: no source for a custom op: found op \"my.x\" without a launcher");
    check_says(error, "OpDescription");
  }
}

TEST_CASE("a description's text is UTF-8, its pattern kind one of the list") {
  OpDescription op = own_op("$0");
  op.name = "my.\xff";
  check_says(error_of([&] { Registry().with(op); }), "an op's name is not UTF-8: found byte 0xff at position 4");
  op = own_op("$0", {"x\xc0"});
  check_says(error_of([&] { Registry().with(op); }), "an operand of op my.x is not UTF-8");
  op = own_op("$0");
  op.pattern = "elemwize";
  check_says(error_of([&] { Registry().with(op); }), "did you mean \"elemwise\"");
}

TEST_CASE("operands of a registered op have different names") {
  const auto with_operands = [](std::vector<std::string> operands) {
    return error_of([&] { Registry().with({.name = "my.op", .operands = std::move(operands)}); });
  };
  CHECK(with_operands({"x", "y"}) == "");
  for (const auto& operands : std::vector<std::vector<std::string>>{{"x", "x"}, {"x", "x?"}, {"a", "x?", "x*"}})
    CHECK(with_operands(operands).find("have the same name: found \"x\", expected each name once") !=
          std::string::npos);
  CHECK(with_operands({"x", "?"}).find("without a name") != std::string::npos);
}
