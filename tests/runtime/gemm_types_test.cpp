// Matrix products of every element type that the GEMM schedule takes, with tiles of the table, at sizes that are no
// multiple of any of them, on the emulator with all its checks.
#include "support/check_gemm_tiles.h"

using namespace fusec;
using namespace fusec::test;

namespace {

struct TypeCase {
  GemmCase model;
  DType sm_80, sm_90;  // in which the factors are multiplied
};

const std::vector<TypeCase> kCases = {
    {{"int8: linear with a scale for each column, gelu",
      "x int8 150,80; w int8 136,80; ws float32 136; xs float32 1; b float16 136",
      "p = static_quant_linear x w ws xs null b {\"out_dtype\": \"float16\"}; h = gelu p", "h"},
     DType::kInt8,
     DType::kInt8},
    {{"float8: linear", "x float8_e4m3fn 150,80; w float8_e4m3fn 136,80; xs float32 150; ws float32 136; b float32 136",
      "p = fp8_linear x w xs ws b {\"out_dtype\": \"bfloat16\"}; h = gelu p", "h"},
     DType::kFloat16,
     DType::kFloat8E4M3FN},
    {{"int8: gated", "x int8 70,144; g int8 200,144; u int8 200,144; gs float32 200; us float32 200; xs float32 1",
      "a = static_quant_linear x g gs xs {\"out_dtype\": \"bfloat16\"}; s = silu a;"
      "c = static_quant_linear x u us xs {\"out_dtype\": \"bfloat16\"}; h = mul s c",
      "h"},
     DType::kInt8,
     DType::kInt8},
};

// With a tile of the table that leaves registers for all sums.
void check_type(const Nvrtc& nvrtc, const TypeCase& c, bool hopper, std::size_t which) {
  check_gemm(nvrtc, c.model, hopper ? "sm_90a" : "sm_80", [&](const GemmForm& form) {
    CHECK(form.dtype == (hopper ? c.sm_90 : c.sm_80));
    std::vector<GemmTiles> table = gemm_tile_table(form.dtype);
    std::erase_if(table, [&](const GemmTiles& t) { return t.warp_rows * t.warp_columns * form.sums > 4096; });
    return table[which % table.size()];
  });
}

}  // namespace

TEST_SUITE("gemm types") {
  TEST_CASE("every type, and some of the tiles for it") {
    const auto nvrtc = nvrtc_or_skip();
    if (!nvrtc) return;
    for (std::size_t i = 0; i < kCases.size(); ++i) check_type(*nvrtc, kCases[i], i % 2 == 1, i + 1);
  }
}

TEST_SUITE("full") {
  TEST_CASE("gemm types: every type with every tile") {
    const auto nvrtc = nvrtc_or_skip();
    if (!nvrtc) return;
    for (const TypeCase& c : kCases)
      for (std::size_t which = 0; which < 10; ++which)
        for (const bool hopper : {false, true})
          if (hopper || c.sm_80 == DType::kInt8) check_type(*nvrtc, c, hopper, which);
  }
}
