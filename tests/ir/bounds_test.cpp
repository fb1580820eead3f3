// Index expressions and what follows from bounds, checked on every value that small bounds allow: a random expression
// is built twice, as an IndexExpr and as a plain computation, and the two must agree before and after simplification.
#include "ir/bounds.h"

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <random>

using namespace fusec;

namespace {

constexpr std::size_t kSymbols = 2, kAxes = 3;

// The value of each symbol, then of each axis.
using Assignment = std::array<std::int64_t, kSymbols + kAxes>;
using Computation = std::function<std::int64_t(const Assignment&)>;

struct Twin {
  IndexExpr e;
  Computation value;
};

// n in 1..4; m is 4 or 8; axes of 6, of n and of n*m positions.
Bounds small_bounds() {
  Bounds bounds;
  bounds.symbols = {{.name = "n", .min = 1, .max = 4, .multiple_of = 1, .hint = 4},
                    {.name = "m", .min = 4, .max = 8, .multiple_of = 4, .hint = 8}};
  const IndexExpr n = IndexExpr::symbol(0), m = IndexExpr::symbol(1);
  bounds.axes = {IndexExpr(6), n, n * m};
  return bounds;
}

const std::vector<Assignment>& assignments() {
  static const std::vector<Assignment> all = [] {
    std::vector<Assignment> list;
    for (std::int64_t n = 1; n <= 4; ++n)
      for (const std::int64_t m : {4, 8})
        for (std::int64_t i = 0; i < 6; ++i)
          for (std::int64_t j = 0; j < n; ++j)
            for (std::int64_t k = 0; k < n * m; ++k) list.push_back({n, m, i, j, k});
    return list;
  }();
  return all;
}

std::int64_t value_of(const IndexExpr& e, const Assignment& at) {
  return evaluate(e, [&](Variable v) { return at[v.kind == Variable::Kind::kSymbol ? v.id : kSymbols + v.id]; });
}

std::int64_t floored(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed) {}

  Twin expression(int depth) {
    if (depth == 0 || below(8) == 0) return leaf();
    const Twin a = expression(depth - 1);
    switch (below(8)) {
      case 0:
      case 1: {
        const Twin b = expression(depth - 1);
        return {a.e + b.e, [a, b](const Assignment& at) { return a.value(at) + b.value(at); }};
      }
      case 2: {
        const Twin b = expression(depth - 1);
        return {a.e - b.e, [a, b](const Assignment& at) { return a.value(at) - b.value(at); }};
      }
      case 3: {
        const Twin b = below(2) ? positive() : leaf();
        return {a.e * b.e, [a, b](const Assignment& at) { return a.value(at) * b.value(at); }};
      }
      case 4: {
        const Twin b = positive();
        return {floor_div(a.e, b.e), [a, b](const Assignment& at) { return floored(a.value(at), b.value(at)); }};
      }
      case 5: {
        const Twin b = positive();
        return {floor_mod(a.e, b.e),
                [a, b](const Assignment& at) { return a.value(at) - floored(a.value(at), b.value(at)) * b.value(at); }};
      }
      case 6: {
        const Twin b = expression(depth - 1);
        return {min(a.e, b.e), [a, b](const Assignment& at) { return std::min(a.value(at), b.value(at)); }};
      }
      default: {
        const Twin b = expression(depth - 1);
        return {max(a.e, b.e), [a, b](const Assignment& at) { return std::max(a.value(at), b.value(at)); }};
      }
    }
  }

 private:
  std::uint32_t below(std::uint32_t n) { return random_() % n; }

  static Twin constant(std::int64_t c) {
    return {c, [c](const Assignment&) { return c; }};
  }
  static Twin symbol(std::uint32_t s) {
    return {IndexExpr::symbol(s), [s](const Assignment& at) { return at[s]; }};
  }

  // A divisor: never zero, and negative now and then where it is a constant.
  Twin positive() {
    if (below(3) == 0) return symbol(below(kSymbols));
    static constexpr std::int64_t kDivisors[] = {1, 2, 3, 4, 6, 8, 16, -2, -3};
    return constant(kDivisors[below(std::size(kDivisors))]);
  }

  Twin leaf() {
    switch (below(4)) {
      case 0:
        return constant(static_cast<std::int64_t>(below(20)) - 8);
      case 1:
        return symbol(below(kSymbols));
      default: {
        const std::uint32_t a = below(kAxes);
        return {IndexExpr::axis(a), [a](const Assignment& at) { return at[kSymbols + a]; }};
      }
    }
  }

  std::mt19937 random_;
};

std::string text(const IndexExpr& e) {
  return to_string(e, [](Variable v) {
    return v.kind == Variable::Kind::kSymbol ? std::string(1, "nm"[v.id]) : std::string(1, "ijk"[v.id]);
  });
}

std::string simplified(const IndexExpr& e) {
  return text(simplify(e, small_bounds()));
}

// What is wrong with an expression or what is said of it; "" where nothing is.
std::string complaint(const Twin& twin, const Bounds& bounds, IndexSimplifier& simplifier) {
  const IndexExpr simple = simplify(twin.e, bounds);
  if (simplifier(twin.e, bounds) != simple) return text(twin.e) + ": simplified otherwise after others";
  const Range range = range_of(twin.e, bounds), simple_range = range_of(simple, bounds);
  const bool nonnegative = proves_nonnegative(twin.e, bounds);
  const bool multiple = proves_multiple_of(twin.e, 4, bounds);
  const bool different = proves_different(twin.e, 3, bounds);
  for (const Assignment& at : assignments()) {
    const std::int64_t v = twin.value(at);
    std::string wrong;
    if (value_of(twin.e, at) != v) wrong = "is " + std::to_string(value_of(twin.e, at)) + ", not " + std::to_string(v);
    if (value_of(simple, at) != v) wrong = "simplified to " + text(simple);
    if (v < range.min || v > range.max || v < simple_range.min || v > simple_range.max) wrong = "outside its range";
    if (nonnegative && v < 0) wrong = "negative";
    if (multiple && v % 4 != 0) wrong = "no multiple of 4";
    if (different && v == 3) wrong = "equal to 3";
    if (wrong.empty()) continue;
    for (const std::int64_t x : at) wrong += " " + std::to_string(x);
    return text(twin.e) + ": " + wrong;
  }
  return "";
}

void check_random(std::uint32_t first, std::uint32_t count) {
  const Bounds bounds = small_bounds();
  IndexSimplifier simplifier;
  for (std::uint32_t seed = first; seed < first + count; ++seed) {
    Generator generator(seed);
    CHECK_MESSAGE(complaint(generator.expression(1 + static_cast<int>(seed % 4)), bounds, simplifier) == "", "seed ",
                  seed);
  }
}

}  // namespace

TEST_CASE("random expressions keep their value and obey what is proven of them") {
  check_random(0, 1500);
}

TEST_CASE("a simplifier follows bounds that change, once it is told") {
  Bounds bounds = small_bounds();
  IndexSimplifier simplifier;
  const IndexExpr e = floor_mod(floor_div(IndexExpr::axis(0), 2), IndexExpr::symbol(1));
  CHECK(text(simplifier(e, bounds)) == "i//2");
  bounds.axes.push_back(4);
  CHECK(simplifier(floor_div(IndexExpr::axis(3) + IndexExpr::axis(0) * 4, 4), bounds) == IndexExpr::axis(0));
  bounds.axes[0] = 100;
  simplifier.forget();
  CHECK(text(simplifier(e, bounds)) == text(simplify(e, bounds)));
  CHECK(text(simplifier(e, bounds)) != "i//2");
}

TEST_SUITE("full") {
  TEST_CASE("many random expressions keep their value and obey what is proven of them") {
    check_random(100000, 60000);
  }
}

TEST_CASE("what a reshape and its inverse leave is the index itself") {
  const IndexExpr n = IndexExpr::symbol(0), m = IndexExpr::symbol(1);
  const IndexExpr i = IndexExpr::axis(0), j = IndexExpr::axis(1), k = IndexExpr::axis(2);
  CHECK(simplified(floor_div(6 * j + i, 6)) == "j");
  CHECK(simplified(floor_mod(6 * j + i, 6)) == "i");
  CHECK(simplified(floor_div(i * n + j, n)) == "i");
  CHECK(simplified(floor_mod(i * n + j, n)) == "j");
  CHECK(simplified(floor_div(k, 4) * 4 + floor_mod(k, 4)) == "k");
  CHECK(simplified(floor_div(k, m) * m + floor_mod(k, m)) == "k");
  CHECK(simplified(floor_div(n * m * i + k, n * m)) == "i");
  CHECK(simplified(floor_mod(k, n * m)) == "k");
  CHECK(simplified(floor_mod(m, 4)) == "0");
  CHECK(simplified(min(i, 7)) == "i");
  CHECK(simplified(max(j - n, 0)) == "0");
}

TEST_CASE("a division sees through digits below its own") {
  const IndexExpr i = IndexExpr::axis(0), k = IndexExpr::axis(2);  // i < 6, k < 32
  CHECK(simplified(floor_div(6 * k + i, 18)) == "k//3");
  CHECK(simplified(floor_mod(6 * k + i, 18)) == "i+6*(k%3)");
  CHECK(simplified(floor_div(6 * k + i + 12, 18)) == "(k+2)//3");
  CHECK(simplified(floor_div(5 * k + i, 15)) == "(i+5*k)//15");  // i does not fit below 5
}

TEST_CASE("a remainder drops inner remainders of which its divisor divides the divisor") {
  const IndexExpr n = IndexExpr::symbol(0), i = IndexExpr::axis(0), k = IndexExpr::axis(2);  // i < 6, k < 32
  CHECK(simplified(floor_mod(floor_mod(k, 8) + 3, 4)) == "(k+3)%4");
  CHECK(simplified(floor_mod(floor_mod(k, 8) * 7 - floor_mod(i, 4) + 2, 4)) == "(-i+3*k+2)%4");
  CHECK(simplified(floor_mod(floor_mod(k + i, n) + 1, n)) == "(i+k+1)%n");
  CHECK(simplified(floor_mod(floor_mod(k, 6) * 2 + floor_mod(i, 4), 4)) == "(i+2*k)%4");
  CHECK(simplified(floor_mod(floor_mod(k, 6) + 3, 4)) == "((k%6)+3)%4");  // 6 is no multiple of 4
}

TEST_CASE("a quotient finds the remainder that dropped those within its dividend") {
  const IndexExpr i = IndexExpr::axis(0), k = IndexExpr::axis(2);  // i < 6, k < 32
  CHECK(simplified(floor_div(floor_mod(k, 20), 4) * 4 + floor_mod(floor_mod(k, 20), 4)) == "k%20");
  const IndexExpr digits = i + 6 * floor_mod(k, 10);
  CHECK(simplified(floor_div(k, 10) * 60 + floor_div(digits, 4) * 4 + floor_mod(digits, 4)) == "i+6*k");
}

TEST_CASE("quotients of a number's parts are one quotient of it") {
  const IndexExpr k = IndexExpr::axis(2);  // k < 32
  const IndexExpr inside = floor_mod(k, 12);
  CHECK(simplified(floor_div(k, 12) * 4 + floor_div(inside, 3)) == "k//3");
  CHECK(simplified(floor_div(k, 12) * 20 + floor_div(inside, 3) * 5 + floor_mod(inside, 3)) == "5*(k//3)+(k%3)");
  CHECK(simplified(floor_div(k, 12) * 5 + floor_div(inside, 3)) == "5*(k//12)+((k%12)//3)");
}

TEST_CASE("equal expressions are one, however they were written") {
  const IndexExpr i = IndexExpr::axis(0), j = IndexExpr::axis(1);
  CHECK((i + j) * (i - j) == i * i - j * j);
  CHECK(((i + 1) * 2 - 2).hash() == (2 * i).hash());
  CHECK(floor_div(12 * i + floor_div(j, 2), 2) == 6 * i + floor_div(j, 4));
  CHECK(text(floor_mod(12 * i + floor_div(j, 2), 2)) == "(j//2)%2");
  CHECK(min(i, j) == min(j, i));
  CHECK(coefficient_of(3 * i + j, {Variable::Kind::kAxis, 0}) == 3);
  CHECK(coefficient_of(i * j, {Variable::Kind::kAxis, 0}) == std::nullopt);
  CHECK_THROWS_AS(floor_div(i, 0), std::domain_error);
  CHECK_THROWS_AS(IndexExpr(INT64_MAX) * i * 2, std::overflow_error);
}

TEST_CASE("limits of products of symbols bound what is made of them") {
  Bounds bounds;
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - (1 << 16);
  bounds.symbols = {{.name = "b"}, {.name = "n", .multiple_of = 8}, {.name = "h"}};
  const IndexExpr b = IndexExpr::symbol(0), n = IndexExpr::symbol(1), h = IndexExpr::symbol(2);
  bounds.axes = {b, simplify(floor_div(n, 8), bounds), b * n * 16};
  const IndexExpr i = IndexExpr::axis(0), g = IndexExpr::axis(1), flat = IndexExpr::axis(2);
  CHECK(range_of(b * n * 16, bounds).max > INT32_MAX);
  bounds.products = {{{0, 1}, kMost / 16}};
  CHECK(range_of(b * n * 16, bounds).max == kMost);
  CHECK(range_of(n * 16, bounds).max == kMost);      // b is 1 at least
  CHECK(range_of(b * 16, bounds).max == kMost / 8);  // n is 8 at least
  CHECK(range_of(-(b * n), bounds).min == -(kMost / 16));
  CHECK(range_of(flat, bounds).max == kMost - 1);
  CHECK(range_of(floor_div(b * n * 16 + 7, 8), bounds).max == (kMost + 7) / 8);
  CHECK(range_of(b * n * h, bounds).max > INT32_MAX);  // nothing is known of h
  CHECK(proves_less(i * n * 16 + g * 128, IndexExpr(INT32_MAX), bounds));
  CHECK_FALSE(proves_less(i * n * 16 + g * 256, IndexExpr(INT32_MAX), bounds));
  CHECK(proves_less(b * floor_div(n, 8) * 128, IndexExpr(INT32_MAX), bounds));
  CHECK_FALSE(proves_less(b * n * 32, IndexExpr(INT32_MAX), bounds));

  // Whatever is said of an expression holds where the limits do.
  std::mt19937 random(7);
  const auto up_to = [&](std::int64_t most) { return static_cast<std::int64_t>(random()) % most; };
  for (int round = 0; round < 300; ++round) {
    const IndexExpr parts[] = {i * n, g, flat, b * n, n, b, floor_div(b * n, 3), i * g, floor_mod(flat, 32), h * b * n};
    IndexExpr e = up_to(100) - 50;
    for (int t = 0; t < 3; ++t) e += parts[random() % std::size(parts)] * (up_to(40) - 15);
    const Range range = range_of(e, bounds);
    const bool nonnegative = proves_nonnegative(e, bounds);
    for (int sample = 0; sample < 40; ++sample) {
      const std::int64_t one = 8 * (1 + up_to(1 << (1 + random() % 24)));
      const std::int64_t other = 1 + up_to(std::max<std::int64_t>(1, kMost / 16 / one));
      if (one * other > kMost / 16) continue;
      const std::int64_t symbols[] = {other, one, 1 + up_to(1000)};
      const std::int64_t axes[] = {random() % 2 ? other - 1 : up_to(other), random() % 2 ? one / 8 - 1 : up_to(one / 8),
                                   random() % 2 ? one * other * 16 - 1 : up_to(one * other * 16)};
      const std::int64_t value =
          evaluate(e, [&](Variable v) { return v.kind == Variable::Kind::kSymbol ? symbols[v.id] : axes[v.id]; });
      CHECK(value >= range.min);
      CHECK(value <= range.max);
      CHECK((!nonnegative || value >= 0));
    }
  }
}
