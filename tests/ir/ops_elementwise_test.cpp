// Type inference and formulas of the unary, binary, ternary and creation families.
#include <doctest/doctest.h>

#include <limits>

#include "support/op_call.h"

using namespace fusec;
using namespace fusec::test;

TEST_CASE("unary: result dtypes") {
  CHECK(inferred("exp", {"int32[4]"}) == "float32[4]");
  CHECK(inferred("exp", {"bool[]"}) == "float32[]");
  CHECK(inferred("sigmoid", {"bfloat16[tokens, 4]"}) == "bfloat16[tokens, 4]");
  CHECK(inferred("sqrt", {"float64[2]"}) == "float64[2]");
  CHECK(inferred("silu", {"float16[2]"}) == "float16[2]");
  CHECK(inferred("neg", {"int8[2*tokens]"}) == "int8[2*tokens]");
  CHECK(inferred("round", {"int16[3]"}) == "int16[3]");
  CHECK(inferred("square", {"bool[3]"}) == "int64[3]");
  CHECK(inferred("sign", {"bool[3]"}) == "bool[3]");
  CHECK(inferred("logical_not", {"float16[3]"}) == "bool[3]");
  CHECK(inferred("isnan", {"int32[3]"}) == "bool[3]");
  CHECK(inferred("bitwise_not", {"uint8[3]"}) == "uint8[3]");
  CHECK(inferred("cast", {"float32[3]"}, {{"dtype", DType::kInt4}}) == "int4[3]");
  CHECK(inferred("relu", {"2"}) == "int64[]");
  CHECK(inferred("neg", {"bool[3]"}) ==
        "inputs/0: wrong dtype: found bool, expected an integer or float dtype (logical_not works on bool)");
  CHECK(inferred("bitwise_not", {"float16[3]"}) ==
        "inputs/0: wrong dtype: found float16, expected bool or an integer dtype");
}

TEST_CASE("unary: clamp's bounds promote as numbers do") {
  CHECK(inferred("clamp", {"int32[3]"}, {{"min", Scalar::whole(0)}}) == "int32[3]");
  CHECK(inferred("clamp", {"int32[3]"}, {{"min", Scalar::whole(0)}, {"max", Scalar::floating(2.5)}}) == "float32[3]");
  CHECK(inferred("clamp", {"bfloat16[3]"}, {{"max", Scalar::floating(2.5)}}) == "bfloat16[3]");
  CHECK(inferred("clamp", {"bool[3]"}, {{"max", Scalar::whole(1)}}) == "int64[3]");
  CHECK(inferred("clamp", {"int32[3]"}) ==
        "clamp without bounds: found neither min nor max, expected at least one of min and max");
}

TEST_CASE("unary: formulas") {
  CHECK(formula("silu", {"float32[4]"}) == "mul(v0[i0], sigmoid(v0[i0]))");
  CHECK(formula("exp", {"int64[4]"}) == "exp(float32(v0[i0]))");
  CHECK(formula("neg", {"int8[4]"}) == "int8(neg(v0[i0]))");
  CHECK(formula("neg", {"int32[4]"}) == "neg(v0[i0])");
  CHECK(formula("floor", {"int32[4]"}) == "v0[i0]");
  CHECK(formula("isnan", {"int32[4]"}) == "false");
  CHECK(formula("cast", {"float32[4]"}, {{"dtype", DType::kBFloat16}}) == "bfloat16(v0[i0])");
  CHECK(formula("cast", {"float32[4]"}, {{"dtype", DType::kUInt8}}) == "uint8(uint32(v0[i0]))");
  CHECK(formula("cast", {"bfloat16[4]"}, {{"dtype", DType::kFloat32}}) == "v0[i0]");
  CHECK(formula("clamp", {"uint8[4]"}, {{"min", Scalar::whole(-1)}, {"max", Scalar::whole(300)}}) ==
        "min(max(v0[i0], 0), 255)");
  CHECK(formula("identity", {"float32[tokens, 2]"}) == "v0[i0, i1]");
}

TEST_CASE("binary: broadcasting") {
  CHECK(inferred("add", {"float32[4, 1, 3]", "float32[5, 1]"}) == "float32[4, 5, 3]");
  CHECK(inferred("add", {"float32[tokens, 4]", "float32[4]"}) == "float32[tokens, 4]");
  CHECK(inferred("add", {"float32[]", "float32[tokens]"}) == "float32[tokens]");
  CHECK(inferred("add", {"float32[2*tokens]", "float32[tokens+tokens]"}) == "float32[2*tokens]");
  CHECK(inferred("add", {"float32[0]", "float32[1]"}) == "float32[0]");
  // undecided by the bounds: checked at launch, and the constant is what is known
  CHECK(inferred("add", {"float32[tokens]", "float32[4]"}) == "float32[4]; tokens == 4");
  CHECK(inferred("add", {"float32[3]", "float32[4]"}) ==
        "inputs/1: shapes do not broadcast: found [4], expected a shape that broadcasts with [3]");
  CHECK(inferred("add", {"float32[2, tokens]", "float32[2, tokens+1]"}) ==
        "inputs/1: shapes do not broadcast: found [2, tokens+1], expected a shape that broadcasts with [2, tokens]");
  CHECK(inferred("add", {"float32[wide]", "float32[8]"}) ==
        "inputs/1: shapes do not broadcast: found [8], expected a shape that broadcasts with [wide]");
}

TEST_CASE("binary: promotion") {
  auto add = [](const char* a, const char* b) { return inferred("add", {a, b}); };
  CHECK(add("float16[2]", "bfloat16[2]") == "float32[2]");
  CHECK(add("int64[2]", "float16[2]") == "float16[2]");
  CHECK(add("uint8[2]", "int8[2]") == "int16[2]");
  CHECK(add("uint8[2]", "int32[2]") == "int32[2]");
  CHECK(add("bool[2]", "uint8[2]") == "uint8[2]");
  CHECK(add("int4[2]", "int8[2]") == "int8[2]");
  CHECK(add("float8_e4m3fn[2]", "float8_e4m3fn[2]") == "float8_e4m3fn[2]");
  CHECK(add("float8_e4m3fn[2]", "1.5") == "float8_e4m3fn[2]");
  // a 0-d tensor, then a number, count only where their category is higher
  CHECK(add("float16[2]", "float64[]") == "float16[2]");
  CHECK(add("int8[2]", "int64[]") == "int8[2]");
  CHECK(add("int8[2]", "bfloat16[]") == "bfloat16[2]");
  CHECK(add("int8[2]", "0.5") == "float32[2]");
  CHECK(add("bool[2]", "1") == "int64[2]");
  CHECK(add("int8[]", "1000") == "int8[]");
  CHECK(add("1", "2.5") == "float32[]");
  CHECK(add("float8_e4m3fn[2]", "float32[2]") ==
        "dtypes do not promote: found float8_e4m3fn and float32, expected dtypes that promote "
        "(cast one of them to the other's dtype)");
  CHECK(add("uint16[2]", "int32[2]").starts_with("dtypes do not promote: found uint16 and int32"));
}

TEST_CASE("binary: results of another dtype, and what is refused") {
  CHECK(inferred("div", {"int32[2]", "int32[2]"}) == "float32[2]");
  CHECK(inferred("div", {"int32[2]", "int32[2]"}, {{"rounding_mode", std::string("floor")}}) == "int32[2]");
  CHECK(inferred("div", {"bool[2]", "bool[2]"}) == "float32[2]");
  CHECK(inferred("lt", {"int32[2]", "float16[2]"}) == "bool[2]");
  CHECK(inferred("logical_and", {"float8_e5m2[2]", "int32[2]"}) == "bool[2]");
  CHECK(inferred("atan2", {"int32[2]", "int32[2]"}) == "float32[2]");
  CHECK(inferred("bitwise_and", {"bool[2]", "int32[2]"}) == "int32[2]");
  CHECK(inferred("pow", {"int32[2]", "0.5"}) == "float32[2]");
  CHECK(inferred("pow", {"bool[2]", "2"}) == "int64[2]");
  CHECK(inferred("sub", {"bool[2]", "bool[2]"}) ==
        "wrong dtype: found bool operands, expected integer or float operands "
        "(logical_and, logical_or and logical_xor work on bool)");
  CHECK(inferred("bitwise_xor", {"int8[2]", "float16[2]"}) ==
        "wrong dtype: found float operands, expected bool or integer operands");
  CHECK(inferred("pow", {"int32[2]", "-1"}) ==
        "inputs/1: integer to a negative power: found -1, expected 0 or more (cast the base to a float dtype)");
}

TEST_CASE("binary: formulas") {
  CHECK(formula("add", {"float32[4, 3]", "float32[3]"}) == "add(v0[i0, i1], v1[i1])");
  CHECK(formula("mul", {"bfloat16[4]", "0.5"}) == "mul(v0[i0], 0.5)");
  CHECK(formula("add", {"int8[4]", "int8[4]"}) == "int8(add(v0[i0], v1[i0]))");
  CHECK(formula("add", {"bool[4]", "bool[4]"}) == "or(v0[i0], v1[i0])");
  // operands meet on the grid of their common dtype
  CHECK(formula("add", {"int32[4]", "bfloat16[4]"}) == "add(bfloat16(float32(v0[i0])), v1[i0])");
  CHECK(formula("add", {"int8[4]", "bfloat16[4]"}) == "add(float32(v0[i0]), v1[i0])");
  CHECK(formula("eq", {"bfloat16[4]", "0.1"}) == "eq(v0[i0], bfloat16(0.100000001))");
  CHECK(formula("pow", {"float32[4]", "2"}) == "mul(v0[i0], v0[i0])");
  CHECK(formula("pow", {"float32[4]", "0.5"}) == "sqrt(v0[i0])");
  CHECK(formula("pow", {"2.0", "float32[4]"}) == "pow(2, v1[i0])");
  CHECK(formula("remainder", {"int32[4]", "3"}) == "floor_mod(v0[i0], 3)");
}

TEST_CASE("ternary") {
  CHECK(inferred("where", {"bool[4, 1]", "float16[3]", "2.5"}) == "float16[4, 3]");
  CHECK(inferred("where", {"bool[4]", "int32[4]", "2.5"}) == "float32[4]");
  CHECK(inferred("where", {"bool[4]", "1", "2"}) == "int64[4]");
  CHECK(inferred("where", {"int32[4]", "1", "2"}) == "inputs/0: wrong dtype: found int32, expected bool or uint8");
  CHECK(inferred("lerp", {"float32[4]", "float32[4]", "0.25"}) == "float32[4]");
  CHECK(inferred("lerp", {"int32[4]", "int32[4]", "1"}) ==
        "wrong dtype: found int32 operands, expected float operands");
  CHECK(inferred("addcmul", {"int32[4]", "int32[4]", "int32[1]"}, {{"value", 2.0}}) == "int32[4]");
  CHECK(inferred("addcdiv", {"float32[4]", "int32[4]", "float32[4]"}) == "float32[4]");
  CHECK(inferred("addcdiv", {"float32[4]", "int32[4]", "int32[4]"}).starts_with("integer division"));
  CHECK(formula("lerp", {"float32[4]", "float32[4]", "0.25"}) == "add(v0[i0], mul(0.25, sub(v1[i0], v0[i0])))");
  CHECK(formula("addcmul", {"int8[4]", "int8[4]", "int8[4]"}, {{"value", 2.0}}) ==
        "int8(add(v0[i0], mul(mul(2, v1[i0]), v2[i0])))");
}

TEST_CASE("full") {
  auto full = [](DType dtype, Scalar value, Shape shape = {3}) {
    return TestCall("full", {}, {{"dtype", dtype}, {"value", value}, {"shape", std::vector<Dim>(shape)}});
  };
  CHECK(full(DType::kFloat16, Scalar::whole(1), {test_dim("tokens"), 2}).inferred() == "float16[tokens, 2]");
  CHECK(full(DType::kInt64, Scalar::floating(2.7)).formula() == "2");
  CHECK(full(DType::kBool, Scalar::floating(0.5)).formula() == "true");
  CHECK(full(DType::kFloat32, Scalar::floating(std::numeric_limits<double>::infinity())).formula() == "inf");
  CHECK(full(DType::kUInt8, Scalar::whole(300)).inferred() ==
        "attrs/value: value out of range: found 300, expected a value of uint8");
  CHECK(full(DType::kInt8, Scalar::floating(std::numeric_limits<double>::quiet_NaN())).inferred() ==
        "attrs/value: value out of range: found nan, expected a value of int8");
  CHECK(full(DType::kInt8, Scalar::whole(1), {-1}).inferred() ==
        "attrs/shape: negative dimension: found -1, expected 0 or more");
}

TEST_CASE("arange") {
  auto arange = [](DType dtype, AttributeValue start, AttributeValue end, AttributeValue step) {
    return TestCall("arange", {}, {{"dtype", dtype}, {"start", start}, {"end", end}, {"step", step}});
  };
  auto whole = [](std::int64_t v) { return AttributeValue(Scalar::whole(v)); };
  auto real = [](double v) { return AttributeValue(Scalar::floating(v)); };
  CHECK(arange(DType::kInt64, whole(0), whole(10), whole(3)).inferred() == "int64[4]");
  CHECK(arange(DType::kInt64, whole(10), whole(0), whole(-3)).inferred() == "int64[4]");
  CHECK(arange(DType::kInt64, whole(5), whole(5), whole(1)).inferred() == "int64[0]");
  CHECK(arange(DType::kInt32, whole(0), test_dim("tokens"), whole(1)).inferred() == "int32[tokens]");
  CHECK(arange(DType::kInt32, test_dim("tokens"), test_dim("tokens+5"), whole(2)).inferred() == "int32[3]");
  CHECK(arange(DType::kFloat32, real(0), real(1), real(0.25)).inferred() == "float32[4]");
  CHECK(arange(DType::kInt64, whole(0), whole(10), whole(3)).formula() == "3*i0");
  CHECK(arange(DType::kFloat32, real(1), real(10), whole(3)).formula() == "float32(3*i0+1)");
  CHECK(arange(DType::kFloat32, real(0.5), real(1), real(0.25)).formula() == "add(0.5, mul(float32(i0), 0.25))");
  CHECK(arange(DType::kInt64, whole(5), whole(0), whole(1)).inferred() ==
        "attrs/end: end of a range: found 0, expected an end at or after 5");
  CHECK(arange(DType::kInt64, whole(0), whole(5), whole(0)).inferred() ==
        "attrs/step: step of a range: found 0, expected a number other than 0");
  CHECK(inferred("arange", {}, {{"dtype", DType::kInt64}, {"end", Scalar::whole(7)}}) == "int64[7]");
}
