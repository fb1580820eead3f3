// Type inference and formulas of the reduction, composite, gated, rotary and quantize families.
#include <doctest/doctest.h>

#include "support/op_call.h"

using namespace fusec;
using namespace fusec::test;

namespace {

Attribute dim(std::vector<std::int64_t> dims) {
  return {"dim", std::move(dims)};
}
const Attribute kKeep{"keepdim", true};

Attribute normalized(std::vector<Dim> shape) {
  return {"normalized_shape", std::move(shape)};
}

}  // namespace

TEST_CASE("reductions: shapes") {
  CHECK(inferred("sum", {"float32[2, 3, 4]"}) == "float32[]");
  CHECK(inferred("sum", {"float32[2, 3, 4]"}, {kKeep}) == "float32[1, 1, 1]");
  CHECK(inferred("sum", {"float32[2, 3, 4]"}, {dim({})}) == "float32[]");
  CHECK(inferred("sum", {"float32[2, 3, 4]"}, {dim({-1, 0})}) == "float32[3]");
  CHECK(inferred("amax", {"float32[tokens, 3, 4]"}, {dim({1}), kKeep}) == "float32[tokens, 1, 4]");
  CHECK(inferred("sum", {"float32[]"}, {dim({0})}) == "float32[]");
  CHECK(inferred("any", {"float32[2, 3]"}, {dim({})}) == "bool[2, 3]");
  CHECK(inferred("argmax", {"float32[2, 3]"}) == "int64[]");
  CHECK(inferred("argmax", {"float32[2, 3]"}, {dim({-1}), kKeep}) == "int64[2, 1]");
  CHECK(inferred("sum", {"float32[2, 3]"}, {dim({2})}) ==
        "attrs/dim: dimension out of range: found 2, expected -2 to 1");
  CHECK(inferred("sum", {"float32[2, 3]"}, {dim({1, -1})}) ==
        "attrs/dim: dimension given twice: found 1, expected each dimension at most once");
  CHECK(inferred("argmin", {"float32[2, 3]"}, {dim({0, 1})}) ==
        "attrs/dim: wrong number of dimensions: found 2, expected one dimension");
  CHECK(inferred("amax", {"float32[2, 0]"}, {dim({1})}) ==
        "inputs/0: reduction of an empty dimension: found float32[2, 0], expected dimension 1 of 1 or more");
}

TEST_CASE("reductions: dtypes") {
  CHECK(inferred("sum", {"bool[2]"}) == "int64[]");
  CHECK(inferred("prod", {"uint8[2]"}) == "int64[]");
  CHECK(inferred("sum", {"bfloat16[2]"}) == "bfloat16[]");
  CHECK(inferred("amax", {"uint8[2]"}) == "uint8[]");
  CHECK(inferred("all", {"uint8[2]"}) == "bool[]");
  CHECK(inferred("logsumexp", {"int32[2]"}, {dim({0})}) == "float32[]");
  CHECK(inferred("cumsum", {"int8[2, 3]"}, {{"dim", std::int64_t{1}}}) == "int64[2, 3]");
  CHECK(inferred("mean", {"int32[2]"}) ==
        "inputs/0: wrong dtype: found int32, expected a float dtype (a cast before it gives one)");
  CHECK(inferred("argmax", {"bool[2]"}) == "inputs/0: wrong dtype: found bool, expected an integer or float dtype");
}

TEST_CASE("reductions: formulas") {
  CHECK(formula("sum", {"float32[4, 8]"}, {dim({1})}) == "reduce sum[i1<8](v0[i0, i1])");
  CHECK(formula("sum", {"int8[4]"}) == "reduce sum[i0<4](int64(v0[i0]))");
  CHECK(formula("mean", {"float16[4, tokens]"}, {dim({1}), kKeep}) ==
        "div(reduce sum[i2<tokens](v0[i0, i2]), float32(tokens))");
  CHECK(formula("argmax", {"float32[4, 8]"}) == "reduce argmax[i0<4, i1<8](v0[i0, i1])");
  CHECK(formula("any", {"float32[4]"}) == "reduce any[i0<4](bool(v0[i0]))");
  CHECK(formula("amax", {"bool[4]"}) == "reduce any[i0<4](v0[i0])");
  CHECK(formula("sum", {"float32[]"}) == "add(v0[], 0)");  // +0 of -0
  CHECK(formula("vector_norm", {"float32[4]"}) == "sqrt(reduce sum[i0<4](mul(v0[i0], v0[i0])))");
}

TEST_CASE("softmax") {
  const Attribute last{"dim", std::int64_t{-1}};
  CHECK(inferred("softmax", {"bfloat16[tokens, 8]"}, {last}) == "bfloat16[tokens, 8]");
  CHECK(inferred("softmax", {"int32[8]"}, {last}).starts_with("inputs/0: wrong dtype"));
  CHECK(formula("softmax", {"float32[4, 8]"}, {last}) ==
        "div(exp(sub(v0[i0, i1], reduce max[i2<8](v0[i0, i2]))), "
        "reduce sum[i3<8](exp(sub(v0[i0, i3], reduce max[i2<8](v0[i0, i2])))))");
}

TEST_CASE("norms") {
  CHECK(inferred("layer_norm", {"bfloat16[tokens, 8]", "float32[8]", "float32[8]"}, {normalized({8})}) ==
        "bfloat16[tokens, 8]");
  CHECK(inferred("layer_norm", {"float32[tokens, 8]", "-", "float32[8]"}, {normalized({8})}) == "float32[tokens, 8]");
  CHECK(inferred("rms_norm", {"float32[2, 4, 8]"}, {normalized({4, 8})}) == "float32[2, 4, 8]");
  CHECK(inferred("rms_norm", {"float32[2, 8]", "float32[4]"}, {normalized({8})}) ==
        "inputs/1: normalized_shape and the parameter's shape differ: found 4, expected 8");
  CHECK(inferred("layer_norm", {"float32[2, 8]"}, {normalized({4})}) ==
        "attrs/normalized_shape: normalized_shape and the last dimensions of x differ: found 4, expected 8");
  CHECK(inferred("layer_norm", {"float32[8]"}, {normalized({2, 8})}) ==
        "attrs/normalized_shape: wrong number of dimensions: found [2, 8], expected 1 to 1");
  CHECK(inferred("group_norm", {"float32[2, 6, 5, 5]", "float32[6]"}, {{"num_groups", std::int64_t{3}}}) ==
        "float32[2, 6, 5, 5]");
  CHECK(inferred("group_norm", {"float32[2, 6, 5]"}, {{"num_groups", std::int64_t{4}}}) ==
        "attrs/num_groups: channels of x and num_groups: found 6, expected a multiple of 4");
  CHECK(inferred("group_norm", {"float32[2, wide, 5]"}, {{"num_groups", std::int64_t{8}}}) == "float32[2, wide, 5]");
  CHECK(inferred("group_norm", {"float32[2, tokens, 5]"}, {{"num_groups", std::int64_t{8}}}) ==
        "float32[2, tokens, 5]; tokens%8 == 0");
  CHECK(inferred("batch_norm", {"float16[2, 6, 5]", "-", "-", "float32[6]", "float32[6]"}) == "float16[2, 6, 5]");
  CHECK(inferred("batch_norm", {"float16[2, 6, 5]", "-", "-", "float32[5]", "float32[6]"}) ==
        "inputs/3: the channels of x and the parameter's shape differ: found 5, expected 6");
  CHECK(formula("rms_norm", {"float32[4, 8]", "float32[8]"}, {normalized({8}), {"eps", 0.5}}) ==
        "mul(mul(v0[i0, i1], rsqrt(add(div(reduce sum[i2<8](mul(v0[i0, i2], v0[i0, i2])), 8), 0.5))), v1[i1])");
}

TEST_CASE("gated units") {
  CHECK(inferred("swiglu", {"bfloat16[tokens, 8]"}) == "bfloat16[tokens, 4]");
  CHECK(inferred("swiglu", {"bfloat16[tokens, 8]", "bfloat16[tokens, 8]"}) == "bfloat16[tokens, 8]");
  CHECK(inferred("reglu", {"float32[7]"}) ==
        "inputs/0: last dimension of gate and up together: found 7, expected a multiple of 2");
  CHECK(inferred("swiglu", {"float32[8]", "float32[8]"}, {{"interleaved", true}}) ==
        "attrs/interleaved: attribute of the form with one operand: found two operands, expected one operand");
  CHECK(formula("reglu", {"float32[8]"}) == "mul(select(lt(v0[i0], 0), 0, v0[i0]), v0[i0+4])");
  CHECK(formula("reglu", {"float32[8]"}, {{"swapped", true}}) == "mul(select(lt(v0[i0+4], 0), 0, v0[i0+4]), v0[i0])");
  CHECK(formula("reglu", {"float32[8]"}, {{"interleaved", true}, {"up_offset", 1.0}}) ==
        "mul(select(lt(v0[2*i0], 0), 0, v0[2*i0]), add(v0[2*i0+1], 1))");
  CHECK(formula("swiglu", {"float32[8]", "float32[8]"}, {{"alpha", 1.5}, {"limit", 7.0}}) ==
        "mul(mul(min(v0[i0], 7), sigmoid(mul(min(v0[i0], 7), 1.5))), min(max(v1[i0], -7), 7))");
}

TEST_CASE("rope") {
  CHECK(inferred("rope", {"bfloat16[2, 4, tokens, 8]", "float32[tokens, 8]", "float32[1, 1, tokens, 8]"}) ==
        "bfloat16[2, 4, tokens, 8]");
  CHECK(inferred("rope", {"float32[4, 7]", "float32[4, 7]", "float32[4, 7]"}) ==
        "inputs/0: last dimension of x: found 7, expected a multiple of 2");
  CHECK(inferred("rope", {"float32[4, 8]", "float32[4, 4]", "float32[4, 8]"}) ==
        "inputs/1: last dimensions of x, cos and sin differ: found 4, expected 8");
  CHECK(inferred("rope", {"float32[4, 8]", "float32[3, 8]", "float32[4, 8]"}) ==
        "inputs/1: shape does not broadcast: found [3, 8], expected a shape that broadcasts to [4, 8]");
  CHECK(formula("rope", {"float32[8]", "float32[8]", "float32[8]"}) ==
        "add(mul(v0[i0], v1[i0]), "
        "mul(select(lt(i0, 4), neg(v0[(i0+4)%8]), v0[(i0+4)%8]), v2[i0]))");
}

TEST_CASE("quantize and dequantize: how scales lie") {
  const Attribute int8{"dtype", DType::kInt8}, half{"dtype", DType::kFloat16};
  const Attribute block{"block", std::int64_t{4}}, rows{"axis", std::int64_t{0}};
  CHECK(inferred("quantize", {"float16[2, 8]", "float32[1]"}, {int8}) == "int8[2, 8]");
  CHECK(inferred("quantize", {"float16[2, 8]", "float32[8]", "int8[8]"}, {int8}) == "int8[2, 8]");
  CHECK(inferred("quantize", {"float16[2, 8]", "float32[2]"}, {int8, rows}) == "int8[2, 8]");
  CHECK(inferred("quantize", {"float16[2, 8]", "float32[2, 1]"}, {int8}) == "int8[2, 8]");
  CHECK(inferred("dequantize", {"int4[2, 8]", "float16[2, 2]"}, {half, block}) == "float16[2, 8]");
  CHECK(inferred("dequantize", {"int4[2, tokens]", "float16[2, 2]"}, {half, block}) ==
        "float16[2, tokens]; tokens == 8");
  CHECK(inferred("quantize", {"float16[2, 8]", "float32[4]"}, {int8}) ==
        "inputs/1: the axis of x and the scale's dimension differ: found 4, expected 8");
  CHECK(inferred("dequantize", {"int4[2, 8]", "float16[2, 3]"}, {half, block}) ==
        "inputs/1: x's dimension 1 and what the scales cover differ: found 12, expected 8");
  CHECK(inferred("quantize", {"float16[2, 8]", "float32[2, 8, 1]"}, {int8}) ==
        "inputs/1: wrong rank: found float32[2, 8, 1], expected one element, or rank 2, or rank 1");
  CHECK(inferred("quantize", {"float16[2, 8]", "float32[1]"}, {half}) ==
        "attrs/dtype: wrong dtype: found float16, expected an integer dtype or a float of 8 bits or 4");
  CHECK(inferred("dequantize", {"int8[2, 8]", "float32[1]"}, {int8}) ==
        "attrs/dtype: wrong dtype: found int8, expected a float dtype");
}

TEST_CASE("quantize and dequantize: formulas") {
  const Attribute int8{"dtype", DType::kInt8}, fp8{"dtype", DType::kFloat8E4M3FN}, half{"dtype", DType::kFloat16};
  CHECK(formula("quantize", {"float16[8]", "float32[1]", "int8[1]"}, {int8}) ==
        "int8(int32(min(max(add(round_even(div(v0[i0], v1[0])), float32(v2[0])), -128), 127)))");
  CHECK(formula("quantize", {"float16[8]", "float32[1]"}, {fp8}) ==
        "float8_e4m3fn(min(max(div(v0[i0], v1[0]), -448), 448))");
  CHECK(formula("dequantize", {"int4[2, 8]", "float16[2, 2]"}, {half, {"block", std::int64_t{4}}}) ==
        "mul(float32(v0[i0, i1]), v1[i0, i1//4])");
}
