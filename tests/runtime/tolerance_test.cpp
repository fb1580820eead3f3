#include "runtime/tolerance.h"

#include <doctest/doctest.h>

#include "ir/text.h"

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
