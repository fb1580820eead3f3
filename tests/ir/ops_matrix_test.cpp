// Type inference and formulas of the matrix and quantized families.
#include <doctest/doctest.h>

#include "support/op_call.h"

using namespace fusec;
using namespace fusec::test;

namespace {
using Ints = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("products: types") {
  CHECK(inferred("matmul", {"float32[2, 3]", "float32[3, 4]"}) == "float32[2, 4]");
  CHECK(inferred("matmul", {"float32[3]", "float32[3]"}) == "float32[]");
  CHECK(inferred("matmul", {"float32[5, 2, 3]", "float32[3]"}) == "float32[5, 2]");
  CHECK(inferred("matmul", {"float32[3]", "float32[7, 3, 2]"}) == "float32[7, 2]");
  CHECK(inferred("matmul", {"bfloat16[8, 1, tokens, 64]", "bfloat16[4, 64, tokens]"}) ==
        "bfloat16[8, 4, tokens, tokens]");
  CHECK(inferred("matmul", {"float32[2, 3]", "float32[4, 3]"}) ==
        "inputs/1: the inner dimensions of a product differ: found 4, expected 3");
  CHECK(inferred("matmul", {"float32[2, 3]", "float16[3, 4]"}) ==
        "inputs/1: operands differ in dtype: found float16, expected float32 (a cast before it brings them together)");
  CHECK(inferred("matmul", {"float32[]", "float32[3]"}) ==
        "inputs/0: wrong rank: found float32[], expected rank 1 or more");
  CHECK(inferred("matmul", {"float32[2, tokens]", "float32[wide, 4]"}) == "float32[2, 4]; tokens == wide");
  CHECK(inferred("linear", {"bfloat16[2, tokens, 8]", "bfloat16[16, 8]", "bfloat16[16]"}) == "bfloat16[2, tokens, 16]");
  CHECK(inferred("linear", {"float32[2, 8]", "float32[16, 7]"}) ==
        "inputs/1: the inner dimensions of a product differ: found 7, expected 8 "
        "(x is [2, 8] and the weight [16, 7]: linear sums over the last dimension of both)");
  CHECK(inferred("linear", {"float32[2, 8]", "float32[16, 8]", "float32[15]"}) ==
        "inputs/2: shape does not broadcast: found [15], expected a shape that broadcasts to [2, 16]");
  CHECK(inferred("bmm", {"float32[2, 3, 4]", "float32[3, 4, 5]"}) ==
        "inputs/1: the batch dimensions of bmm differ: found 3, expected 2");
  CHECK(inferred("addmm", {"float32[4]", "float32[2, 3]", "float32[3, 4]"}) == "float32[2, 4]");
  CHECK(inferred("addmm", {"int64[4]", "int64[2, 3]", "int64[3, 4]"}, {{"alpha", Scalar::floating(0.5)}}) ==
        "attrs/alpha: wrong category: found a float, expected an integer, as the operands are");
}

TEST_CASE("convolutions: types") {
  CHECK(inferred("conv2d", {"float32[1, 3, 224, 224]", "float32[64, 3, 7, 7]"},
                 {{"stride", Ints{2}}, {"padding", Ints{3}}}) == "float32[1, 64, 112, 112]");
  CHECK(inferred("conv2d", {"float32[3, tokens, 8]", "float32[4, 3, 3, 3]"},
                 {{"stride", Ints{2}}, {"padding", Ints{1}}}) == "float32[4, (tokens+1)//2, 4]");
  CHECK(inferred("conv2d", {"float32[1, 4, 8, 8]", "float32[6, 2, 3, 3]", "float32[6]"},
                 {{"groups", std::int64_t{2}}, {"padding", std::string("same")}}) == "float32[1, 6, 8, 8]");
  CHECK(inferred("conv2d", {"float32[1, 4, 8, 8]", "float32[6, 4, 3, 3]"},
                 {{"padding", std::string("same")}, {"stride", Ints{2}}}) ==
        "attrs/padding: padding \"same\" with a stride: found 2, expected a stride of 1");
  CHECK(inferred("conv2d", {"float32[1, 4, 8, 8]", "float32[6, 3, 3, 3]"}) ==
        "inputs/0: the input channels of a convolution differ: found 4, expected 3");
  CHECK(inferred("conv2d", {"float32[1, 4, 8, 8]", "float32[5, 2, 3, 3]"}, {{"groups", std::int64_t{2}}}) ==
        "inputs/1: the output channels of a convolution in groups: found 5, expected a multiple of 2");
  CHECK(inferred("conv2d", {"float32[1, 4, 2, 2]", "float32[6, 4, 3, 3]"}) ==
        "inputs/1: the kernel of a convolution fits into its padded input: found 3, expected at most 2");
  CHECK(inferred("conv2d", {"float32[1, 4, 8, 8]", "float32[6, 4, 3, 3]"}, {{"stride", Ints{0}}}) ==
        "attrs/stride: entry out of range: found 0, expected 1 or more");
  CHECK(inferred("conv2d", {"float32[1, 4, 8, 8]", "float32[6, 4, 3, 3]"}, {{"stride", Ints{1, 1, 1}}}) ==
        "attrs/stride: wrong number of entries: found 3, expected 1 or 2");
  CHECK(inferred("conv1d", {"float32[4, 8]", "float32[6, 4, 3]", "float32[5]"}) ==
        "inputs/2: the output channels of a convolution differ: found 5, expected 6");
  CHECK(inferred("conv_transpose2d", {"float32[1, 4, 8, 8]", "float32[4, 3, 2, 2]"}, {{"stride", Ints{2}}}) ==
        "float32[1, 3, 16, 16]");
  CHECK(inferred("conv_transpose2d", {"float32[1, 4, 8, 8]", "float32[4, 3, 2, 2]"},
                 {{"stride", Ints{2}}, {"output_padding", Ints{2}}}) ==
        "attrs/output_padding: output_padding too large: found 2, expected less than the stride or the dilation");
  CHECK(inferred("conv_transpose1d", {"float32[1, 4, tokens]", "float32[4, 3, 4]"},
                 {{"stride", Ints{2}}, {"padding", Ints{1}}}) == "float32[1, 3, 2*tokens]");
}

TEST_CASE("attention: types") {
  CHECK(inferred("scaled_dot_product_attention", {"float16[2, 8, tokens, 64]", "float16[2, 8, wide, 64]",
                                                  "float16[2, 8, wide, 32]"}) == "float16[2, 8, tokens, 32]");
  CHECK(inferred("scaled_dot_product_attention", {"float16[8, 5, 64]", "float16[2, 7, 64]", "float16[2, 7, 64]"},
                 {{"enable_gqa", true}}) == "float16[8, 5, 64]");
  CHECK(inferred("scaled_dot_product_attention", {"float16[8, 5, 64]", "float16[3, 7, 64]", "float16[3, 7, 64]"},
                 {{"enable_gqa", true}}) ==
        "inputs/0: the query heads for each key head: found 8, expected a multiple of 3");
  CHECK(inferred("scaled_dot_product_attention",
                 {"float16[8, 5, 64]", "float16[8, 7, 64]", "float16[8, 7, 64]", "bool[5, 7]"},
                 {{"is_causal", true}}) ==
        "attrs/is_causal: is_causal beside a mask: found true, expected false, or no mask");
  CHECK(inferred("scaled_dot_product_attention",
                 {"float16[8, 5, 64]", "float16[8, 7, 64]", "float16[8, 7, 64]", "float32[5, 7]"}) ==
        "inputs/3: wrong dtype: found float32, expected bool or float16");
  CHECK(inferred("scaled_dot_product_attention",
                 {"float16[8, 5, 64]", "float16[8, 7, 64]", "float16[8, 7, 64]", "bool[5, 6]"}) ==
        "inputs/3: shape does not broadcast: found [5, 6], expected a shape that broadcasts to [8, 5, 7]");
}

TEST_CASE("products: formulas") {
  CHECK(formula("matmul", {"float16[2, 3]", "float16[3, 4]"}) == "reduce sum[i2<3](mul(v0[i0, i2], v1[i2, i1]))");
  CHECK(formula("matmul", {"float32[8, 1, 5, 3]", "float32[4, 3, 5]"}) ==
        "reduce sum[i4<3](mul(v0[i0, 0, i2, i4], v1[i1, i4, i3]))");
  CHECK(formula("matmul", {"int8[2, 3]", "int8[3, 4]"}) == "int8(reduce sum[i2<3](mul(v0[i0, i2], v1[i2, i1])))");
  CHECK(formula("linear", {"float32[5, 3]", "float32[4, 3]", "float32[4]"}) ==
        "add(reduce sum[i2<3](mul(v0[i0, i2], v1[i1, i2])), v2[i1])");
  CHECK(formula("addmm", {"float32[4]", "float32[2, 3]", "float32[3, 4]"},
                {{"alpha", Scalar::floating(0.5)}, {"beta", Scalar::floating(2)}}) ==
        "add(mul(reduce sum[i2<3](mul(v1[i0, i2], v2[i2, i1])), 0.5), mul(v0[i1], 2))");
  CHECK(formula("addmm", {"float32[4]", "float32[2, 3]", "float32[3, 4]"}, {{"beta", Scalar::floating(0)}}) ==
        "reduce sum[i2<3](mul(v1[i0, i2], v2[i2, i1]))");
}

TEST_CASE("convolutions: formulas") {
  CHECK(formula("conv2d", {"float32[1, 3, 8, 8]", "float32[6, 3, 1, 1]"}) ==
        "reduce sum[i4<3](mul(v0[i0, i4, i2, i3], v1[i1, i4, 0, 0]))");
  CHECK(formula("conv1d", {"float32[2, 4, 8]", "float32[6, 2, 3]", "float32[6]"},
                {{"groups", std::int64_t{2}}, {"padding", Ints{1}}}) ==
        "add(reduce sum[i3<2, i4<3](mul(select(and(ge(i2+i4-1, 0), lt(i2+i4-1, 8)), v0[i0, i3+2*(i1//3), i2+i4-1] if "
        "and(ge(i2+i4-1, 0), lt(i2+i4-1, 8)), 0), v1[i1, i3, i4])), v2[i1])");
  CHECK(formula("conv1d", {"float32[2, 4, 8]", "float32[4, 1, 3]"}, {{"groups", std::int64_t{4}}}) ==
        "reduce sum[i3<3](mul(v0[i0, i1, i2+i3], v1[i1, 0, i3]))");
  CHECK(formula("conv_transpose1d", {"float32[1, 4, 8]", "float32[4, 3, 2]"}, {{"stride", Ints{2}}}) ==
        "reduce sum[i3<4, i4<2](mul(select(and(lt((i2-i4)%2, 1), ge(i2-i4, 0)), v0[i0, i3, (i2-i4)//2] if "
        "and(lt((i2-i4)%2, 1), ge(i2-i4, 0)), 0), v1[i3, i1, i4]))");
}

TEST_CASE("attention: formulas") {
  CHECK(formula("scaled_dot_product_attention", {"float32[5, 16]", "float32[7, 16]", "float32[7, 4]"}) ==
        "reduce sum[i6<7](mul(div(exp(sub(mul(reduce sum[i7<16](mul(v0[i0, i7], v1[i6, i7])), 0.25), reduce "
        "max[i2<7](mul(reduce sum[i3<16](mul(v0[i0, i3], v1[i2, i3])), 0.25)))), reduce sum[i4<7](exp(sub(mul(reduce "
        "sum[i5<16](mul(v0[i0, i5], v1[i4, i5])), 0.25), reduce max[i2<7](mul(reduce sum[i3<16](mul(v0[i0, i3], v1[i2, "
        "i3])), 0.25)))))), v2[i6, i1]))");
  CHECK(formula("scaled_dot_product_attention", {"float32[8, 5, 16]", "float32[2, 7, 16]", "float32[2, 7, 4]"},
                {{"enable_gqa", true}, {"is_causal", true}, {"scale", 0.5}}) ==
        "reduce sum[i7<7](mul(div(exp(sub(select(ge(i1-i7, 0), mul(reduce sum[i8<16](mul(v0[i0, i1, i8], v1[i0//4, i7, "
        "i8])), 0.5), -inf), reduce max[i3<7](select(ge(i1-i3, 0), mul(reduce sum[i4<16](mul(v0[i0, i1, i4], v1[i0//4, "
        "i3, i4])), 0.5), -inf)))), reduce sum[i5<7](exp(sub(select(ge(i1-i5, 0), mul(reduce sum[i6<16](mul(v0[i0, i1, "
        "i6], v1[i0//4, i5, i6])), 0.5), -inf), reduce max[i3<7](select(ge(i1-i3, 0), mul(reduce sum[i4<16](mul(v0[i0, "
        "i1, i4], v1[i0//4, i3, i4])), 0.5), -inf)))))), v2[i0//4, i7, i2]))");
}

TEST_CASE("quantized: types") {
  CHECK(inferred("static_quant_linear", {"int8[4, 8]", "int8[6, 8]", "float32[6]", "float32[1]"},
                 {{"out_dtype", DType::kFloat16}}) == "float16[4, 6]");
  CHECK(inferred("static_quant_linear", {"int8[4, 8]", "int8[6, 8]", "float32[5]", "float32[1]"},
                 {{"out_dtype", DType::kFloat16}}) ==
        "inputs/2: wrong shape of a scale: found [5], expected shape [1] or [6]");
  CHECK(inferred("static_quant_linear", {"int8[4, 8]", "int8[6, 8]", "float32[6]", "float32[4]"},
                 {{"out_dtype", DType::kFloat16}}) ==
        "inputs/3: wrong shape of a scale: found [4], expected one element");
  CHECK(inferred("static_quant_linear", {"int8[4, 8]", "uint8[6, 8]", "float32[6]", "float32[1]"},
                 {{"out_dtype", DType::kFloat16}}) == "inputs/1: wrong dtype: found uint8, expected int8");
  CHECK(inferred("static_quant_linear_int4", {"int8[4, 64]", "int4[6, 64]", "float32[6, 2]", "-", "float32[1]"},
                 {{"group_size", std::int64_t{32}}, {"out_dtype", DType::kFloat16}}) == "float16[4, 6]");
  CHECK(inferred("static_quant_linear_int4", {"int8[4, 64]", "int4[6, 64]", "float32[6, 2]", "-", "float32[1]"},
                 {{"group_size", std::int64_t{48}}, {"out_dtype", DType::kFloat16}}) ==
        "inputs/1: the groups of the inner dimension: found 64, expected a multiple of 48");
  CHECK(inferred("fp8_linear", {"float8_e4m3fn[tokens, 8]", "float8_e4m3fn[6, 8]", "float32[tokens]", "float32[6]"},
                 {{"out_dtype", DType::kBFloat16}}) == "bfloat16[tokens, 6]");
  CHECK(inferred("mxfp4_linear", {"bfloat16[4, 64]", "float4_e2m1fn[6, 64]", "float8_e8m0fnu[6, 2]"},
                 {{"out_dtype", DType::kBFloat16}}) == "bfloat16[4, 6]");
  CHECK(inferred("mxfp4_linear", {"float8_e4m3fn[4, 64]", "float4_e2m1fn[6, 64]", "float8_e8m0fnu[6, 2]"},
                 {{"out_dtype", DType::kBFloat16}}) ==
        "inputs/4: operand missing: found nothing, expected the block scales of a float8_e4m3fn x");
  CHECK(inferred("mxfp4_linear", {"bfloat16[4, 40]", "float4_e2m1fn[6, 40]", "float8_e8m0fnu[6, 2]"},
                 {{"out_dtype", DType::kBFloat16}}) ==
        "inputs/1: the blocks of the inner dimension: found 40, expected a multiple of 32");
  CHECK(inferred("grouped_matmul", {"bfloat16[tokens, 8]", "bfloat16[4, 8, 6]", "int32[4]"}) == "bfloat16[tokens, 6]");
  CHECK(inferred("grouped_matmul", {"bfloat16[tokens, 8]", "bfloat16[4, 8, 6]", "int32[3]"}) ==
        "inputs/2: the experts and their offsets differ: found 3, expected 4");
}

TEST_CASE("quantized: formulas") {
  CHECK(formula("static_quant_linear", {"int8[4, 8]", "int8[6, 8]", "float32[6]", "float32[1]"},
                {{"out_dtype", DType::kFloat16}}) ==
        "mul(mul(float32(reduce sum[i2<8](mul(v0[i0, i2], v1[i1, i2]))), v3[0]), v2[i1])");
  CHECK(formula("static_quant_linear",
                {"int8[4, 8]", "int8[6, 8]", "float32[6]", "float32[1]", "int8[1]", "float32[6]"},
                {{"out_dtype", DType::kFloat16}}) ==
        "add(mul(mul(float32(reduce sum[i2<8](mul(sub(v0[i0, i2], v4[0]), v1[i1, i2]))), v3[0]), v2[i1]), v5[i1])");
  CHECK(formula("static_quant_linear_int4", {"int8[4, 64]", "int4[6, 64]", "float32[6, 2]", "-", "float32[1]"},
                {{"group_size", std::int64_t{32}}, {"out_dtype", DType::kFloat16}}) ==
        "mul(reduce sum[i2<64](mul(float32(v0[i0, i2]), mul(float32(v1[i1, i2]), v2[i1, i2//32]))), v4[0])");
  CHECK(formula("fp8_linear", {"float8_e4m3fn[tokens, 8]", "float8_e4m3fn[6, 8]", "float32[tokens]", "float32[6]"},
                {{"out_dtype", DType::kBFloat16}}) ==
        "mul(mul(reduce sum[i2<8](mul(v0[i0, i2], v1[i1, i2])), v2[i0]), v3[i1])");
  CHECK(formula("mxfp4_linear", {"bfloat16[4, 64]", "float4_e2m1fn[6, 64]", "float8_e8m0fnu[6, 2]"},
                {{"out_dtype", DType::kBFloat16}}) ==
        "reduce sum[i2<64](mul(v0[i0, i2], mul(v1[i1, i2], v2[i1, i2//32])))");
  CHECK(formula("grouped_matmul", {"float32[7, 8]", "float32[4, 8, 6]", "int32[4]"}) ==
        "select(lt(reduce sum[i2<4](int64(le(int64(v2[i2]), i0))), 4), reduce sum[i3<8](mul(v0[i0, i3] if lt(reduce "
        "sum[i2<4](int64(le(int64(v2[i2]), i0))), 4), v1[{max(min(reduce sum[i2<4](int64(le(int64(v2[i2]), i0))), 3), "
        "0)}, i3, i1] if lt(reduce sum[i2<4](int64(le(int64(v2[i2]), i0))), 4))), 0)");
}
