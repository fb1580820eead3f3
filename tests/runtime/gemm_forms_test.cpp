// Matrix products whose factors are copied as they lie in memory: every tile of the table with every layout, at sizes
// that are no multiple of any tile, on the emulator with all its checks.
#include "support/check_gemm_tiles.h"

using namespace fusec;
using namespace fusec::test;

namespace {

const std::vector<GemmCase> kCases = {
    {"linear, bias and gelu", "x bfloat16 150,72; w bfloat16 136,72; b bfloat16 136", "p = linear x w b; h = gelu p",
     "h"},
    {"matmul, columns no multiple of eight in the result alone", "x float16 70,40; w float16 37,40", "h = linear x w",
     "h"},
    {"matmul", "x bfloat16 141,40; w bfloat16 40,264", "h = matmul x w", "h"},
    {"both transposed", "x float16 56,136; w float16 72,56",
     "t = transpose x {\"dim0\": 0, \"dim1\": 1}; u = transpose w {\"dim0\": 0, \"dim1\": 1}; h = matmul t u", "h"},
    {"batched, symbolic", "x bfloat16 b,33,48; w bfloat16 b,48,40", "p = bmm x w; h = relu p", "h", "b"},
    {"gated", "x bfloat16 70,96; g bfloat16 200,96; u bfloat16 200,96",
     "a = linear x g; c = linear x u; s = silu a; h = mul s c", "h"},
    {"triangle of it, with more behind", "x float16 2,70,72; w float16 2,90,72",
     "u = transpose w {\"dim0\": 1, \"dim1\": 2}; p = matmul x u; a = tril p {\"diagonal\": 3};"
     "c = triu a {\"diagonal\": -20}; h = relu c",
     "h"},
    {"different depths, two results", "x float16 40,24; y float16 40,136; a float16 72,24; b float16 72,136",
     "p = linear x a; q = linear y b; h = add p q", "h p"},
    {"float32: linear, bias and gelu", "x float32 150,76; w float32 132,76; b float32 132",
     "p = linear x w b; h = gelu p", "h"},
    {"float32: matmul", "x float32 141,40; w float32 40,268", "h = matmul x w", "h"},
    {"float32: both transposed", "x float32 60,136; w float32 71,60",
     "t = transpose x {\"dim0\": 0, \"dim1\": 1}; u = transpose w {\"dim0\": 0, \"dim1\": 1}; h = matmul t u", "h"},
    {"float32: gated, symbolic", "x float32 n,96; g float32 100,96; u float32 100,96",
     "a = linear x g; c = linear x u; s = silu a; h = mul s c", "h", "n"},
    {"float32: odd columns", "x float32 70,40; w float32 37,40", "h = linear x w", "h"},
    {"heads read and written", "x bfloat16 2,4,35,16; w bfloat16 96,64; r bfloat16 2,6,35,16",
     "t = transpose x {\"dim0\": 1, \"dim1\": 2}; f = reshape t {\"shape\": [2, 35, 64]}; p = linear f w;"
     "s = reshape p {\"shape\": [2, 35, 6, 16]}; q = permute s {\"dims\": [0, 2, 1, 3]}; h = add q r",
     "h"},
};

// Those that leave a thread registers for two sums.
std::vector<GemmTiles> tiles_for(const GemmCase& c) {
  const bool two = std::string_view(c.what).find("gated") != std::string_view::npos ||
                   std::string_view(c.what).find("depths") != std::string_view::npos;
  std::vector<GemmTiles> table =
      gemm_tile_table(std::string(c.what).starts_with("float32") ? DType::kFloat32 : DType::kFloat16);
  std::erase_if(table, [&](const GemmTiles& t) { return two && t.warp_rows * t.warp_columns > 2048; });
  return table;
}

}  // namespace

TEST_SUITE("gemm forms") {
  TEST_CASE("every layout, and some of the tiles for it") {
    const auto nvrtc = nvrtc_or_skip();
    if (!nvrtc) return;
    for (std::size_t i = 0; i < kCases.size(); ++i) {
      const std::vector<GemmTiles> table = tiles_for(kCases[i]);
      check_with_tiles(*nvrtc, kCases[i], table[(i + 1) % table.size()], i % 2 ? "sm_90a" : "sm_80");
    }
  }
}

TEST_SUITE("full") {
  TEST_CASE("every layout with every tile") {
    const auto nvrtc = nvrtc_or_skip();
    if (!nvrtc) return;
    for (const GemmCase& c : kCases)
      for (GemmTiles tiles : tiles_for(c))
        for (const int stages : {3, 4}) {
          tiles.stages = stages;
          check_with_tiles(*nvrtc, c, tiles, stages == 3 ? "sm_90a" : "sm_80");
        }
  }
}

TEST_CASE("what is a gemm: aligned factors, gathered or computed on their way as well") {
  const auto is_gemm = [](const char* inputs, const char* nodes) {
    const Graph graph = short_model(inputs, nodes, "h");
    const LoweredPlan plan = lower_plan(graph, plain_plan(graph, true), Target{}, {});
    return name(plan.kernels.back().schedule).starts_with("gemm");
  };
  CHECK(is_gemm("x float16 64,64; w float16 64,64", "h = linear x w"));
  CHECK_FALSE(is_gemm("x float16 64,60; w float16 64,60", "h = linear x w"));
  CHECK_FALSE(is_gemm("x float16 64,64; w float16 64,61", "h = matmul x w"));
  CHECK(is_gemm("x float16 64,64; w float16 64,64", "a = gelu x; h = linear a w"));
  CHECK(is_gemm("t float16 33,64; i int64 64; w float16 64,64", "x = index_select t i {\"dim\": 0}; h = linear x w"));
  CHECK(is_gemm("x float16 64,64; w float16 80,64", "p = linear x w; t = tril p; h = add t p"));
  CHECK_FALSE(is_gemm("x float64 64,64; w float64 64,64", "h = linear x w"));
}

TEST_CASE("few rows beside a large matrix of weights have a block for every multiprocessor") {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Target target = target_for(arch);
    const Graph graph = short_model("x bfloat16 16,4096; w bfloat16 4096,4096", "h = linear x w", "h");
    const LoweredPlan plan = lower_plan(graph, plain_plan(graph, true), target, {});
    REQUIRE(plan.kernels.size() == 1);
    CHECK(plan.kernels[0].grid[0].as_constant().value_or(0) >= 0.5 * target.multiprocessors);
  }
}
