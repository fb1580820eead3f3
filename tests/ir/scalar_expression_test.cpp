#include "ir/scalar_expression.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "ir/builder.h"
#include "ir/error.h"
#include "ir/read.h"
#include "ir/text.h"
#include "ir/write.h"

namespace fusec {
namespace {

// The formula of a node with this expression on a: float16[n, 4], b: int32[4], c: float32[] and the number 0.1.
std::string formula_of(const std::string& expression, DType dtype = DType::kFloat32) {
  GraphBuilder builder;
  const Dim n = builder.symbol("n");
  const auto a = builder.input("a", DType::kFloat16, {n, 4});
  const auto b = builder.input("b", DType::kInt32, {4});
  const auto c = builder.input("c", DType::kFloat32, {});
  const auto y = builder.custom("my.op", {a, b, c, 0.1}, {{dtype, {n, 4}}}, {{"expr", expression}}).front();
  builder.output(y);
  const Graph graph = builder.finish();
  CHECK(graph.nodes[0].pattern == OpPattern::kBroadcast);
  ExprPool pool(graph.symbols);
  const std::vector<IndexExpr> index = {IndexExpr::axis(pool.new_axis(n)), IndexExpr::axis(pool.new_axis(4))};
  return to_string(pool, build_formula(pool, graph, graph.nodes[0], 0, index));
}

// The same formula, whichever way it is written.
void same(const std::string& a, const std::string& b) {
  CHECK(formula_of(a) == formula_of(b));
}

std::string message_of(const std::string& expression) {
  try {
    formula_of(expression);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("precedence and associativity") {
  same("$0 + $2 * $0", "$0 + ($2 * $0)");
  same("$0 - $2 - $0", "($0 - $2) - $0");
  same("$0 / $2 * $0", "($0 / $2) * $0");
  same("-$0 * $2", "(-$0) * $2");
  same("$0 < $2 && $0 > 1.0 || $1 == 3", "(($0 < $2) && ($0 > 1.0)) || ($1 == 3)");
  same("!($0 < $2)", " ! ( $0<$2 ) ");
  same("relu($0)", "select($0 < 0, 0, $0)");
  same("clamp($0, 0, 6.0)", "min(max($0, 0), 6.0)");
  CHECK(formula_of("$0 - $2 - $0") != formula_of("$0 - ($2 - $0)"));
}

TEST_CASE("types meet in the wider one, and the result has the declared dtype") {
  same("$1 / 2", "$1 / 2.0");
  same("exp($1)", "exp($1 * 1.0)");
  CHECK(formula_of("$1 + 1", DType::kInt32) != formula_of("$1 + 1.0", DType::kInt32));
  CHECK_NOTHROW(formula_of("$0 < 1", DType::kBool));
  CHECK_NOTHROW(formula_of("select($0 > $3, $0, nan)", DType::kFloat64));
  CHECK_NOTHROW(formula_of("9223372036854775807 % $1", DType::kInt8));
}

TEST_CASE("what is no expression is refused") {
  const std::string where = "node \"my.op\", attrs/expr: ";
  CHECK(message_of("$0 +") == where +
                                  "not an expression: found \"$0 +\", which ends too early, expected a number, an "
                                  "operand such as $0, a function or \"(\"");
  CHECK(message_of("$0 $1") ==
        where + "not an expression: found \"$1\" at position 4, expected an operator or the end");
  CHECK(message_of("$4") ==
        where + "the expression reads an operand that the node does not have: found \"$4\", expected $0 to $3");
  CHECK(message_of("sqr($0)") == where +
                                     "unknown function: found \"sqr\", expected a function of scalar expressions "
                                     "(hint: did you mean \"sqrt\"?)");
  CHECK(message_of("pow($0)") == where + "wrong number of arguments of pow: found 1, expected 2");
  CHECK(message_of("__expf($0)").find("unknown function") != std::string::npos);
  CHECK(message_of("$0; asm(\"trap;\")").find("not an expression") != std::string::npos);
  CHECK(message_of(std::string(1000, '(')).find("nests too deep") != std::string::npos);
  CHECK(message_of("1" + std::string(5000, ' ')).find("too long") != std::string::npos);
  CHECK(message_of("$99999999999999999999").find("not an expression") != std::string::npos);
}

TEST_CASE("only a pointwise node has a formula by its expression") {
  const auto read = [](const std::string& pattern) {
    return read_model_text(
        R"({"fusec":1,"inputs":[{"name":"x","dtype":"float32","shape":[4]}],"nodes":[{"name":"y","op":"my.op","inputs":["x"],)" +
            pattern +
            R"("attrs":{"expr":"$0+1"},"outputs":[{"name":"y","dtype":"float32","shape":[4]}]}],"outputs":["y"]})",
        "m.json", "");
  };
  CHECK(read("\"pattern\":\"elemwise\",").nodes[0].op->formula);
  CHECK_FALSE(read("").nodes[0].op->formula);
  const Graph graph = read("\"pattern\":\"broadcast\",");
  const Graph again = read_model_text(model_text(graph), "m.json", "");
  CHECK(again.nodes[0].op->formula);
  CHECK(graph_text(again) == graph_text(graph));
}

}  // namespace fusec
