#include "ir/parse_dim.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "ir/op.h"
#include "ir/type.h"

namespace fusec {
namespace {

const Symbols kSymbols = {{.name = "n"}, {.name = "m", .min = 2, .max = 64}, {.name = "min"}, {.name = "tokens"}};

std::string canonical(std::string_view text) {
  return to_string(parse_dim(text, SymbolNames(kSymbols)), kSymbols);
}

}  // namespace

TEST_CASE("dimension strings are read into canonical form") {
  CHECK(canonical("7") == "7");
  CHECK(canonical(" n ") == "n");
  CHECK(canonical("2*tokens+1") == "2*tokens+1");
  CHECK(canonical("1 + tokens * 2") == "2*tokens+1");
  CHECK(canonical("(n+1)*(n-1)") == "n*n-1");
  CHECK(canonical("n-n") == "0");
  CHECK(canonical("-n+8") == "-n+8");
  CHECK(canonical("2 - -3") == "5");
  CHECK(canonical("7//2*2+7%2") == "7");
  CHECK(canonical("-7//2") == "-4");  // rounds down, as Python's
  CHECK(canonical("n//2//3") == "n//6");
  CHECK(canonical("min(n, 4)") == canonical("min(4,n)"));
  CHECK(canonical("max(n+1, n)") == "n+1");
  CHECK(canonical("min + min(min, 2)") == "min+min(2, min)");  // a symbol may be called min
  CHECK(canonical("n//m") == "n//m");                          // m is never 0
}

TEST_CASE("what is printed reads back as the same expression") {
  std::mt19937 random(7);
  const std::vector<std::string> leaves = {"n", "m", "tokens", "1", "2", "3", "16"};
  const std::vector<std::string> operators = {"+", "-", "*"};
  for (int i = 0; i < 3000; ++i) {
    std::string text = leaves[random() % leaves.size()];
    for (unsigned steps = random() % 6; steps > 0; --steps) {
      const std::string leaf = leaves[random() % leaves.size()];
      switch (random() % 6) {
        case 0:
          text = "(" + text + ")//" + std::to_string(1 + random() % 5);
          break;
        case 1:
          text = "(" + text + ")%" + std::to_string(1 + random() % 5);
          break;
        case 2:
          text = (random() % 2 ? "min(" : "max(") + text + ", " + leaf + ")";
          break;
        case 3:
          text = leaf + operators[random() % 3] + "(" + text + ")";
          break;
        default:
          text = "(" + text + ")" + operators[random() % 3] + leaf;
      }
    }
    CAPTURE(text);
    const SymbolNames names(kSymbols);
    const Dim dim = parse_dim(text, names);
    CHECK(parse_dim(to_string(dim, kSymbols), names) == dim);
  }
}

TEST_CASE("errors of dimension strings say what was found") {
  try {
    parse_dim("2*token", SymbolNames(kSymbols));
    FAIL("accepted");
  } catch (const OpError& error) {
    CHECK(error.what == "undeclared symbol");
    CHECK(error.found == "\"token\"");
    CHECK(error.hint == "did you mean \"tokens\"?");
  }
}

}  // namespace fusec
