#include <doctest/doctest.h>

#include "codegen/stmt/print_statements.h"
#include "codegen/stmt/shorten_names.h"
#include "codegen/stmt/simplify_statements.h"
#include "codegen/stmt/statement_builder.h"

using namespace fusec;

namespace {

using Wanted = std::map<std::string, std::string, std::less<>>;

std::string simplified(const StatementBuilder& builder) {
  Statements statements = builder.statements();
  Wanted wanted;
  simplify_statements(statements, wanted);
  return print_statements(statements, 0);
}

std::string named(const StatementBuilder& builder, const Wanted& wanted,
                  const std::vector<std::string>& parameters = {}) {
  Statements statements = builder.statements();
  shorten_names(statements, parameters, wanted, {});
  return print_statements(statements, 0);
}

}  // namespace

TEST_CASE("statements are printed") {
  StatementBuilder b;
  b.declare("const int", "t", CExpr("blockIdx.x") * 256 + "threadIdx.x");
  b.open_if(CExpr("t") >= 100);
  b.stop();
  b.end();
  b.declare_array("float", "sum", 4);
  b.open_for("int", "e", 4, 0);
  b.assign(element("sum", "e"), 0);
  b.end();
  b.open_for("int", "turn", "n", 2, 1);
  b.open_if(CExpr("t") < "turn");
  b.run(call("copy_vector", {"to", "from"}));
  b.open_else();
  b.open_if(CExpr("t") < 7);
  b.run(call("clear", {"sum"}));
  b.end();
  b.end();
  b.end();
  b.run(call("__syncthreads"));
  CHECK(print_statements(b.statements(), 1) == R"(  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t >= 100) return;
  float sum[4];
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    sum[e] = 0;
  }
#pragma unroll 2
  for (int turn = 1; turn < n; ++turn) {
    if (t < turn) {
      copy_vector(to, from);
    } else if (t < 7) {
      clear(sum);
    }
  }
  __syncthreads();
)");
}

TEST_CASE("lines of schedules that print themselves stay as they are") {
  StatementBuilder b;
  b.line("#pragma unroll");
  b.open("for (int i = 0; i < 3; ++i)");
  b.open("if (i == 0)");
  b.line("row_2[i] = (0) * 2;");
  b.close("} else {");
  b.reopen();
  b.blank();
  b.close();
  b.close("}  // rows");
  b.open("");
  b.close();
  CHECK(print_statements(b.statements(), 0, 20) == R"(#pragma unroll
for (int i = 0; i < 3; ++i) {
  if (i == 0) {
    row_2[i] = (0) * 2;
  } else {

  }
}  // rows
{
}
)");
}

TEST_CASE("long lines are broken outside of brackets") {
  StatementBuilder b;
  b.declare("const bool", "inside", CExpr("first_row") < "rows" && CExpr("first_column") < "columns");
  b.run(call("store_words", {CExpr("result") + "first_row", "words_of_result"}));
  CHECK(print_statements(b.statements(), 1, 44) == R"(  const bool inside = first_row < rows &&
      first_column < columns;
  store_words(result + first_row,
      words_of_result);
)");
}

TEST_CASE("what nothing uses is dropped") {
  StatementBuilder b;
  b.declare("const int", "row", "t");
  b.declare("const int", "column", CExpr("row") * 3);
  b.declare("const int", "of", CExpr("column") + 1);
  b.open_if(CExpr("row") < 3);
  b.declare("const int", "unused", 1);
  b.end();
  b.assign(element("y", "row"), 0);
  CHECK(simplified(b) == "const int row = t;\ny[row] = 0;\n");
}

TEST_CASE("settled conditions are no statements") {
  StatementBuilder b;
  b.open_if("true");
  b.assign("a", 1);
  b.open_else();
  b.assign("b", 1);
  b.end();
  b.open_if("false");
  b.assign("c", 1);
  b.end();
  CHECK(simplified(b) == "a = 1;\n");
}

TEST_CASE("a value has one name") {
  StatementBuilder b;
  b.declare("const int", "row_2", CExpr("t") + 1);
  b.declare("const int", "first", "row_2");
  b.declare("const int", "again", "first");
  b.declare("float", "sum", "start");
  b.declare("const long long", "wide", "row_2");
  b.line("use(again, sum, wide.row_2);");
  Statements statements = b.statements();
  Wanted wanted = {{"row_2", "row"}, {"first", "first"}, {"again", "again"}};
  simplify_statements(statements, wanted);
  shorten_names(statements, {}, wanted, {});
  CHECK(print_statements(statements, 0) == R"(const int row = t + 1;
float sum = start;
const long long wide = row;
use(row, sum, wide.row_2);
)");
}

TEST_CASE("names have numbers only where two are visible") {
  StatementBuilder b;
  const Wanted wanted = {{"e", "e"}, {"e_2", "e"}, {"e_3", "e"}, {"row_2", "row"}, {"min_2", "min"}, {"x_2", "x"}};
  b.open_for("int", "e", 4);
  b.declare("const int", "row_2", CExpr("e") + "x_2");
  b.open_for("int", "e_2", 4);
  b.line("y[row_2 + e_2] = tile.row_2[e];");
  b.end();
  b.end();
  b.open_for("int", "e_3", 4);
  b.assign(element("z", "e_3"), call("min", {"e_3", "min_2"}));
  b.end();
  b.declare("const int", "min_2", 3);
  CHECK(named(b, wanted, {"x_2"}) == R"(for (int e = 0; e < 4; ++e) {
  const int row = e + x;
  for (int e_2 = 0; e_2 < 4; ++e_2) {
    y[row + e_2] = tile.row_2[e];
  }
}
for (int e = 0; e < 4; ++e) {
  z[e] = min(e, min_2);
}
const int min_2 = 3;
)");
}
