// Who multiplies matrices, through the public API.
#include <doctest/doctest.h>

#include <algorithm>

#include "fusec/fusec.h"

using namespace fusec;

namespace {

// A SwiGLU layer; its two first weights are one, or two.
Model swiglu(bool merged) {
  ModelBuilder b("mlp");
  b.symbol("tokens", {.max = 4096});
  const auto x = b.input("x", "bfloat16", {"tokens", 64});
  const auto down = b.constant("down", "bfloat16", {64, 96});
  ModelBuilder::Value gate, up;
  if (merged) {
    const auto both = b.op("linear", {x, b.constant("w", "bfloat16", {192, 64})}, {}, "both");
    const auto halves = b.op_several("chunk", 2, {both}, {{"chunks", 2}, {"dim", 1}}, "halves");
    gate = halves[0];
    up = halves[1];
  } else {
    gate = b.op("linear", {x, b.constant("wg", "bfloat16", {96, 64})}, {}, "gate");
    up = b.op("linear", {x, b.constant("wu", "bfloat16", {96, 64})}, {}, "up");
  }
  b.output(b.op("linear", {b.op("mul", {b.op("silu", {gate}), up}), down}, {}, "y"));
  return b.build();
}

std::size_t calls(const std::vector<Group>& groups) {
  return static_cast<std::size_t>(
      std::ranges::count_if(groups, [](const Group& g) { return g.claimed_by.starts_with("cublaslt."); }));
}

}  // namespace

TEST_CASE("cuBLASLt multiplies where it is asked to, and what stands between is one kernel") {
  for (const bool merged : {true, false}) {
    Options options;
    options.gemm = "cublaslt";
    const auto groups = partition(swiglu(merged), options);
    CHECK(groups.size() == (merged ? 3 : 4));
    CHECK(calls(groups) == (merged ? 2 : 3));
    const Compilation c = compile(swiglu(merged), options);
    CHECK(c.source.find("#include <cublasLt.h>") != std::string::npos);
    CHECK(c.kernels.size() == 1);
    options.gemm = "builtin";
    CHECK(calls(partition(swiglu(merged), options)) == 0);
    CHECK(compile(swiglu(merged), options).source.find("cublasLt") == std::string::npos);
  }
}

TEST_CASE("who multiplies is one of three") {
  Options options;
  options.gemm = "cublas";
  CHECK_THROWS_WITH_AS(partition(swiglu(true), options), doctest::Contains("builtin, cublaslt or auto"), Error);
  options.gemm = "auto";
  CHECK_NOTHROW(partition(swiglu(true), options));
}

TEST_CASE("a user's pattern may be a call, where the library has it") {
  Options options;
  options.gemm = "cublaslt";
  options.patterns = {{.text = "pattern mine.product priority 5000 match linear(a, b) becomes call cublaslt\n",
                       .check = nullptr,
                       .attributes = nullptr}};
  const auto groups = partition(swiglu(true), options);
  CHECK(std::ranges::count_if(groups, [](const Group& g) { return g.claimed_by == "mine.product"; }) == 2);
}
