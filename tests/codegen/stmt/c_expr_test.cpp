#include "codegen/stmt/c_expr.h"

#include <doctest/doctest.h>

using namespace fusec;

TEST_CASE("expressions simplify while they are built") {
  const CExpr x = "x", y = "y";
  CHECK((CExpr(0) * 2).text() == "0");
  CHECK((x - 0).text() == "x");
  CHECK((0 + x).text() == "x");
  CHECK((3 + x).text() == "x + 3");
  CHECK((cast("int", 55) + 3).text() == "58");
  CHECK((x * 1 * 4 * 8).text() == "x * 32");
  CHECK((x + 3 - 5).text() == "x - 2");
  CHECK((x + -2).text() == "x - 2");
  CHECK((x + y * -4).text() == "x - y * 4");
  CHECK((x - x).text() == "0");
  CHECK((x / 1 + y % 1).text() == "x");
  CHECK((x * 12 / 4).text() == "x * 3");
  CHECK((x * 0 + y).text() == "y");
  CHECK((-(-x)).text() == "x");
  CHECK((CExpr(7) / 2 + CExpr(7) % 2).text() == "4");
}

TEST_CASE("nothing is folded beyond 32 bits or across a load") {
  const CExpr big = 1ll << 31;
  CHECK((big + 1).text() == "2147483648ll + 1");
  CHECK((CExpr(65536) * 65536).text() == "65536 * 65536");
  CHECK((CExpr(-7) / 2).text() == "-7 / 2");
  CHECK((CExpr("a[i]") * 0).text() == "a[i] * 0");
  CHECK((call("next") * 0).text() == "next() * 0");
}

TEST_CASE("conditions that are settled vanish") {
  const CExpr yes = "true", no = "false", c = CExpr("x") < 3;
  CHECK((yes && c).text() == "x < 3");
  CHECK((c && no).is_false());
  CHECK((c || no).text() == "x < 3");
  CHECK((CExpr(2) < 3).is_true());
  CHECK((!(CExpr(2) >= 3)).is_true());
  CHECK((c && c).text() == "x < 3");
  CHECK(select(yes, "a", "b").text() == "a");
  CHECK(select(c, "a", "a").text() == "a");
}

TEST_CASE("parentheses are where C++ or a reader needs them") {
  const CExpr x = "x", y = "y", z = "z";
  CHECK(((x + y) * z).text() == "(x + y) * z");
  CHECK((x + (y + z)).text() == "x + (y + z)");
  CHECK((x - (y - z)).text() == "x - (y - z)");
  CHECK((x / y * z).text() == "(x / y) * z");
  CHECK((x / y + z % y).text() == "x / y + z % y");
  CHECK(((x < y && y < z) || z < 1).text() == "(x < y && y < z) || z < 1");
  CHECK((x < 1 && (y < 2 && z < 3)).text() == "x < 1 && y < 2 && z < 3");
  CHECK(cast("int", x + y).text() == "(int)(x + y)");
  CHECK((-CExpr("-x")).text() == "-(-x)");
  CHECK((x + (y & 15)).text() == "x + (y & 15)");
  CHECK(select(x < y, select(y < z, x, y), z).text() == "x < y ? (y < z ? x : y) : z");
  CHECK(select(x < y, x, select(y < z, y, z)).text() == "x < y ? x : y < z ? y : z");
  CHECK(element(cast("const int*", x), y + 1).text() == "((const int*)x)[y + 1]");
  CHECK(pointee("const unsigned", x + y).text() == "*(const unsigned*)(x + y)");
}

TEST_CASE("text that was printed before is an operand") {
  CHECK((CExpr("a * 3 + b") * 2).text() == "(a * 3 + b) * 2");
  CHECK((CExpr("(a * 3 + b)") * 2).text() == "(a * 3 + b) * 2");
  CHECK((CExpr("load<4>(x, y)") * 2).text() == "load<4>(x, y) * 2");
  CHECK(element("(const int*)x", 1).text() == "((const int*)x)[1]");
  CHECK((CExpr("threadIdx.x") + 1).text() == "threadIdx.x + 1");
  CHECK((CExpr("8") + 1).text() == "9");
}

TEST_CASE("leaves are replaced, and the result is simplified") {
  const CExpr e = CExpr("x") * 4 + "y";
  const auto with = [](const CExpr& leaf) -> CExpr { return leaf == CExpr("x") ? CExpr(0) : leaf; };
  CHECK(with_leaves(e, with).text() == "y");
}

TEST_CASE("words of text that may be variables") {
  std::string words;
  const std::string_view text = R"(x_w.w[e] + 0x54u * 1.5e3f + put<Kind::kSure>(p->at, "row %0"))";
  for_each_word(
      text, [&](std::size_t first, std::size_t last) { words += std::string(text.substr(first, last - first)) + " "; });
  CHECK(words == "x_w e put Kind kSure p ");
}
