#include "runtime/tolerance.h"

#include <doctest/doctest.h>

#include "ir/text.h"
#include "runtime/compare_outputs.h"

using namespace fusec;

TEST_CASE("a value's tolerance is that of the widest rounding on its way") {
  const Graph graph = parse_graph_text(
      "model \"m\"\ninput x: float16[4]\ninput b: bfloat16[4]\ninput f: float32[4]\n"
      "a: float32[4] = cast(x, dtype=\"float32\")\nc: float16[4] = exp(x)\nd: float32[4] = cast(c, dtype=\"float32\")\n"
      "e: bfloat16[4] = exp(b)\ng: float32[4] = cast(e, dtype=\"float32\")\nh: float32[4] = add(d, g)\n"
      "i: float16[4] = cast(h, dtype=\"float16\")\nj: float32[4] = exp(f)\nreturn a, d, h, i, j\n");
  const auto rtol = [&](const char* name, DType dtype) {
    return tolerances_of(graph, std::nullopt).of(name, dtype).rtol;
  };
  CHECK(rtol("a", DType::kFloat32) == 2e-5);  // a cast of what came in is exact
  CHECK(rtol("d", DType::kFloat32) == 1e-2);  // the reference rounded c
  CHECK(rtol("h", DType::kFloat32) == 3e-2);
  CHECK(rtol("i", DType::kFloat16) == 3e-2);
  CHECK(rtol("j", DType::kFloat32) == 2e-5);
  CHECK(tolerances_of(graph, Tolerance{0.5, 0.25}).of("j", DType::kFloat32).rtol == 0.5);
  CHECK(tolerances_of(graph, Tolerance{0.5, 0.25}).of("k", DType::kInt32).rtol == 0);
}

TEST_CASE("what float32 products lead to is off by as much as tf32 is, where that is allowed") {
  const Graph graph = parse_graph_text(
      "model \"m\"\ninput x: float32[4, 4]\ninput w: float32[4, 4]\np: float32[4, 4] = matmul(x, w)\n"
      "y: float32[4, 4] = exp(p)\nz: float32[4, 4] = exp(x)\ninput e: float32[2, 4, 4]\ninput o: int32[2]\n"
      "g: float32[4, 4] = grouped_matmul(x, e, o)\nreturn y, z, g\n");
  const auto rtol = [&](const char* name, bool allow_tf32) {
    return tolerances_of(graph, std::nullopt, allow_tf32).of(name, DType::kFloat32).rtol;
  };
  CHECK(rtol("y", true) == 2e-3);
  CHECK(rtol("g", true) == 2e-3);
  CHECK(rtol("z", true) == 2e-5);
  CHECK(rtol("y", false) == 2e-5);
  CHECK(tolerances_of(graph, Tolerance{0.5, 0.25}, true).of("y", DType::kFloat32).rtol == 0.5);
}

TEST_CASE("what is quantized behind 16-bit results may be a step off, other integers may not") {
  const Graph graph = parse_graph_text(
      "model \"m\"\ninput x: bfloat16[4]\ninput s: float32[1]\nh: bfloat16[4] = exp(x)\n"
      "q: int8[4] = quantize(h, s, dtype=\"int8\")\nr: int8[2, 2] = reshape(q, shape=[2, 2])\n"
      "p: int8[4] = quantize(x, s, dtype=\"int8\")\ni: int64[] = argmax(h)\nreturn r, p, i\n");
  const Tolerances tolerances = tolerances_of(graph, std::nullopt);
  CHECK(tolerances.of("q", DType::kInt8).atol == 1);
  CHECK(tolerances.of("r", DType::kInt8).atol == 1);
  CHECK(tolerances.of("p", DType::kInt8).atol == 0);  // what came in is quantized, as it is, by both
  CHECK(tolerances.of("i", DType::kInt64).atol == 0);
}

TEST_CASE("of what is quantized behind float32 that was computed one element in a thousand may be a step off") {
  const Graph graph = parse_graph_text(
      "model \"m\"\ninput x: float32[4000]\ninput s: float32[1]\nh: float32[4000] = exp(x)\n"
      "q: int8[4000] = quantize(h, s, dtype=\"int8\")\nr: int8[40, 100] = reshape(q, shape=[40, 100])\n"
      "p: int8[4000] = quantize(x, s, dtype=\"int8\")\nreturn r, p\n");
  const Tolerances tolerances = tolerances_of(graph, std::nullopt);
  CHECK(tolerances.of("r", DType::kInt8).share == 1e-3);
  CHECK(tolerances.of("p", DType::kInt8).atol == 0);
  const auto steps = [](const char* name, std::int64_t off, std::int64_t by) {
    HostTensor made(DType::kInt8, {4000});
    for (std::int64_t i = 0; i < made.size(); ++i) made.set_integer(i, i < off ? by : 0);
    return TensorMap{{name, made}};
  };
  CHECK_FALSE(first_difference(steps("r", 4, 1), steps("r", 0, 0), tolerances));
  CHECK_FALSE(first_difference(steps("r", 4, -1), steps("r", 0, 0), tolerances));
  CHECK(first_difference(steps("r", 5, 1), steps("r", 0, 0), tolerances));
  CHECK(first_difference(steps("r", 1, 2), steps("r", 0, 0), tolerances));
  CHECK(first_difference(steps("p", 1, 1), steps("p", 0, 0), tolerances));
}

TEST_CASE("the absolute tolerance grows with an output's magnitude, unless it is the user's") {
  const auto tensor = [](std::initializer_list<double> values) {
    HostTensor made(DType::kBFloat16, {static_cast<std::int64_t>(values.size())});
    std::int64_t i = 0;
    for (const double value : values) made.set_real(i++, value, Overflow::kSaturate);
    return TensorMap{{"y", made}};
  };
  const TensorMap want = tensor({100, -100, 0.5}), got = tensor({100, -100, 1.5}), wrong = tensor({100, -100, 8});
  CHECK_FALSE(first_difference(got, want, {}));
  CHECK(first_difference(wrong, want, {}));
  CHECK(first_difference(got, want, {.given = Tolerance{3e-2, 3e-2}, .by_value = {}}));
  // Experts' rows beyond the last offset are zeros, however many.
  CHECK_FALSE(first_difference(tensor({101, 0, 0, 0, 0, 0.75}), tensor({100, 0, 0, 0, 0, -1}), {}));
}
