// Kernels whose parameters may be one buffer are not told that each has memory of its own.
#include "codegen/expr/in_place.h"

#include <doctest/doctest.h>

#include <array>

using namespace fusec;

TEST_CASE("in place: a parameter is found by its whole name") {
  KernelSource source{
      .name = "k",
      .text =
          "extern \"C\" __global__ void\n"
          "@KERNEL@(const float* __restrict__ x_2, const float* __restrict__ x, float* __restrict__ y_1,\n"
          "         float* __restrict__ y) {\n}\n"};
  source.parameters = {{.name = "x_2"}, {.name = "x"}, {.name = "y_1"}, {.name = "y", .written = true}};
  allow_alias(source, std::array{KernelSource::InPlace{.read = 1, .written = 3}});
  CHECK(source.text ==
        "extern \"C\" __global__ void\n"
        "@KERNEL@(const float* __restrict__ x_2, const float* x, float* __restrict__ y_1,\n"
        "         float* y) {\n}\n");
}
