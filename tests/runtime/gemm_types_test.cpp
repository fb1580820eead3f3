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
    {{"int8: quantized on the way", "x float16 70,80; w int8 104,80; ws float32 104; xs float32 1",
      "q = quantize x xs {\"dtype\": \"int8\"}; h = static_quant_linear q w ws xs {\"out_dtype\": \"float16\"}", "h"},
     DType::kInt8,
     DType::kInt8},
    {{"int8: weights narrowed on the way", "x int8 70,144; w int32 96,144; ws float32 96; xs float32 1",
      "v = cast w {\"dtype\": \"int8\"}; h = static_quant_linear x v ws xs {\"out_dtype\": \"float16\"}", "h"},
     DType::kInt8,
     DType::kInt8},
    {{"int8: a zero point", "x int8 70,144; w int8 104,144; ws float32 104; xs float32 1; xo int8 1",
      "p = static_quant_linear x w ws xs xo {\"out_dtype\": \"float16\"}; h = relu p", "h"},
     DType::kInt8,
     DType::kInt8},
    {{"int8: a zero point, rows and columns swapped, of two products",
      "x int8 72,144; w int8 104,144; v int8 104,144; ws float32 1; xs float32 1; xo int8 1",
      "p = static_quant_linear x w ws xs xo {\"out_dtype\": \"float16\"};"
      "q = static_quant_linear x v ws xs {\"out_dtype\": \"float16\"}; s = mul p q;"
      "h = transpose s {\"dim0\": 0, \"dim1\": 1}",
      "h"},
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
    {{"float8 of both kinds, a scale for each row", "x float8_e5m2 70,112; w float8_e4m3fn 96,112; s float32 70,1",
      "f = cast x {\"dtype\": \"float32\"}; y = mul f s; g = cast w {\"dtype\": \"float32\"}; p = linear y g; h = relu "
      "p",
      "h"},
     DType::kFloat16,
     DType::kFloat8E4M3FN},
    {{"float8: blocks of 128 on both sides",
      "x float8_e4m3fn 70,384; w float8_e4m3fn 96,384; s float32 70,3; t float32 96,3",
      "f = dequantize x s {\"dtype\": \"float32\", \"axis\": 1, \"block\": 128};"
      "g = dequantize w t {\"dtype\": \"float32\", \"axis\": 1, \"block\": 128}; h = linear f g",
      "h"},
     DType::kFloat16,
     DType::kFloat8E4M3FN},
    {{"float8: weights across, bfloat16 beside them", "x bfloat16 75,72; w float8_e4m3fn 72,104",
      "g = cast w {\"dtype\": \"bfloat16\"}; p = matmul x g; h = relu p", "h"},
     DType::kBFloat16,
     DType::kBFloat16},
    {{"int4: groups of 32", "x int8 70,160; w int4 96,160; s float32 96,5; xs float32 1",
      "h = static_quant_linear_int4 x w s null xs {\"group_size\": 32, \"out_dtype\": \"float32\"}", "h"},
     DType::kInt8,
     DType::kInt8},
    {{"int4: groups of 16 with offsets",
      "x int8 70,176; w int4 96,176; s float16 96,11; o int8 96,11; xs float32 1; xo int8 1",
      "p = static_quant_linear_int4 x w s o xs xo {\"group_size\": 16, \"out_dtype\": \"float16\"}; h = gelu p", "h"},
     DType::kFloat16,
     DType::kFloat16},
    {{"int4: groups of 48", "x int8 70,192; w int4 96,192; s float32 96,4; xs float32 1",
      "h = static_quant_linear_int4 x w s null xs {\"group_size\": 48, \"out_dtype\": \"float16\"}", "h"},
     DType::kFloat16,
     DType::kFloat16},
    {{"int4: groups of 64 with offsets",
      "x int8 70,192; w int4 96,192; s float16 96,3; o int8 96,3; xs float32 1; xo int8 1",
      "h = static_quant_linear_int4 x w s o xs xo {\"group_size\": 64, \"out_dtype\": \"float16\"}", "h"},
     DType::kFloat16,
     DType::kFloat16},
    {{"int4: groups of 128", "x int8 70,256; w int4 96,256; s float32 96,2; xs float32 1",
      "h = static_quant_linear_int4 x w s null xs {\"group_size\": 128, \"out_dtype\": \"float16\"}", "h"},
     DType::kInt8,
     DType::kInt8},
    {{"int4 weights of float16", "x float16 70,128; w int4 104,128; s float16 104,4",
      "g = dequantize w s {\"dtype\": \"float16\", \"axis\": 1, \"block\": 32}; h = linear x g", "h"},
     DType::kFloat16,
     DType::kFloat16},
    {{"uint4 weights with zero points", "x bfloat16 70,128; w uint4 104,128; s bfloat16 104,2; z uint4 104,2",
      "g = dequantize w s z {\"dtype\": \"bfloat16\", \"axis\": 1, \"block\": 64}; h = linear x g", "h"},
     DType::kBFloat16,
     DType::kBFloat16},
    {{"int8 weights across, bfloat16", "x bfloat16 70,72; w int8 72,104; s float32 104",
      "g = dequantize w s {\"dtype\": \"bfloat16\", \"axis\": 1}; h = matmul x g", "h"},
     DType::kBFloat16,
     DType::kBFloat16},
    {{"uint8 weights of float16", "x float16 70,80; w uint8 104,80; s float16 104",
      "g = dequantize w s {\"dtype\": \"float16\", \"axis\": 0}; h = linear x g", "h"},
     DType::kFloat16,
     DType::kFloat16},
    {{"mxfp4: bfloat16", "x bfloat16 70,160; w float4_e2m1fn 104,160; s float8_e8m0fnu 104,5; b float32 104",
      "h = mxfp4_linear x w s b {\"out_dtype\": \"bfloat16\"}", "h"},
     DType::kBFloat16,
     DType::kBFloat16},
    {{"mxfp4: float16", "x float16 70,160; w float4_e2m1fn 104,160; s float8_e8m0fnu 104,5",
      "h = mxfp4_linear x w s {\"out_dtype\": \"float32\"}", "h"},
     DType::kFloat16,
     DType::kFloat16},
    {{"mxfp4: float8 with scales of its own",
      "x float8_e4m3fn 70,160; w float4_e2m1fn 104,160; s float8_e8m0fnu 104,5; xs float8_e8m0fnu 70,5",
      "h = mxfp4_linear x w s null xs {\"out_dtype\": \"float32\"}", "h"},
     DType::kFloat16,
     DType::kFloat16},
    {{"computed: gated in front, symbolic", "x bfloat16 n,72; y bfloat16 n,72; w bfloat16 104,72",
      "s = silu x; g = mul s y; h = linear g w", "h", "n"},
     DType::kBFloat16,
     DType::kBFloat16},
    {{"computed: cast and scaled by rows and columns",
      "x float32 70,72; s float32 70,1; g float32 72; w float16 104,72",
      "a = mul x s; c = mul a g; d = cast c {\"dtype\": \"float16\"}; h = linear d w", "h"},
     DType::kFloat16,
     DType::kFloat16},
    {{"computed: float32, heads", "x float32 2,4,35,16; w float32 96,64; r float32 70,96",
      "t = transpose x {\"dim0\": 1, \"dim1\": 2}; f = reshape t {\"shape\": [70, 64]}; e = relu f; p = linear e w; h "
      "= add p r",
      "h"},
     DType::kFloat32,
     DType::kFloat32},
};

// With a tile of the table that leaves registers for all sums, and fits shared memory.
void check_type(const Nvrtc& nvrtc, const TypeCase& c, bool hopper, std::size_t which) {
  const char* arch = hopper ? "sm_90a" : "sm_80";
  const Target target = target_for(arch);
  check_gemm(nvrtc, c.model, arch, [&](const GemmForm& form) {
    CHECK(form.dtype == (hopper ? c.sm_90 : c.sm_80));
    std::vector<GemmTiles> table = gemm_tile_table(form.dtype);
    const std::int64_t block = form.loops[0].block;
    const int sums = form.accumulators * (block != 0 ? 2 : 1);
    GemmForm tiled = form;
    std::erase_if(table, [&](const GemmTiles& t) {
      tiled.tiles = t;
      return t.warp_rows * t.warp_columns * sums > 4096 ||
             t.k / form.loops[0].blocks_per_tile(t.k) % (32 / form.element_bytes()) != 0 ||
             shared_bytes(tiled) > target.shared_bytes_per_block;
    });
    return table[which % table.size()];
  });
}

}  // namespace

TEST_SUITE("gemm types") {
  TEST_CASE("every type, and some of the tiles for it" * doctest::test_suite("full")) {
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
        for (const bool hopper : {false, true}) check_type(*nvrtc, c, hopper, which);
  }
}
