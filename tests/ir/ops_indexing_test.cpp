// Type inference and formulas of the indexing, pooling and communication families.
#include <doctest/doctest.h>

#include "support/op_call.h"

using namespace fusec;
using namespace fusec::test;

namespace {
using Ints = std::vector<std::int64_t>;
using Dims = std::vector<Dim>;

}  // namespace

TEST_CASE("indexing: types") {
  CHECK(inferred("embedding", {"float32[100, 8]", "int64[2, tokens]"}) == "float32[2, tokens, 8]");
  CHECK(inferred("embedding", {"float32[100, 8]", "float32[2]"}) ==
        "inputs/1: wrong dtype: found float32, expected int64 or int32");
  CHECK(inferred("gather", {"float32[5, 6]", "int64[5, 2]"}, {{"dim", std::int64_t{1}}}) == "float32[5, 2]");
  CHECK(inferred("gather", {"float32[5, 6]", "int64[6, 2]"}, {{"dim", std::int64_t{1}}}) ==
        "inputs/1: the index of a gather is no larger than its tensor in dimension 0: found 6, expected at most 5");
  CHECK(inferred("gather", {"float32[5, 6]", "int64[tokens, 2]"}, {{"dim", std::int64_t{1}}}) ==
        "float32[tokens, 2]; max(5, tokens) == 5");
  CHECK(inferred("gather", {"float32[5, 6]", "int64[5]"}, {{"dim", std::int64_t{1}}}) ==
        "inputs/1: wrong rank: found int64[5], expected rank 2");
  CHECK(inferred("index_select", {"float32[5, 6]", "int32[tokens]"}, {{"dim", std::int64_t{-1}}}) ==
        "float32[5, tokens]");
  CHECK(inferred("index_select", {"float32[5, 6]", "int32[2, 2]"}, {{"dim", std::int64_t{-1}}}) ==
        "inputs/1: wrong rank: found int32[2, 2], expected rank 1");
  CHECK(inferred("scatter", {"float32[5, 6]", "int64[5, 2]", "float32[5, 3]"}, {{"dim", std::int64_t{1}}}) ==
        "float32[5, 6]");
  CHECK(inferred("scatter", {"float32[5, 6]", "int64[5, 2]", "float32[5, 1]"}, {{"dim", std::int64_t{1}}}) ==
        "inputs/1: the index of a scatter is no larger than its source in dimension 1: found 2, expected at most 1");
  CHECK(inferred("scatter", {"float32[5, 6]", "int64[5, 2]", "float16[5, 2]"}, {{"dim", std::int64_t{1}}}) ==
        "inputs/2: operands differ in dtype: found float16, expected float32 (a cast before it brings them together)");
  CHECK(inferred("index_put", {"float32[5, 6, 7]", "float32[3, 7]", "int64[3]", "int64[1]"}) == "float32[5, 6, 7]");
  CHECK(inferred("index_put", {"float32[5, 6, 7]", "float32[3, 6]", "int64[3]", "-", "int64[1]"}) ==
        "float32[5, 6, 7]");
  CHECK(inferred("index_put", {"float32[5, 6]", "float32[3]", "int64[3]", "int64[3]", "int64[3]"}) ==
        "inputs/4: more indices than dimensions: found 3, expected 2 or fewer");
  CHECK(inferred("index_put", {"float32[5, 6]", "float32[4, 6]", "int64[3]"}) ==
        "inputs/1: shape does not broadcast: found [4, 6], expected a shape that broadcasts to [3, 6]");
  CHECK(inferred("index_put", {"float32[5, 6]", "float32[5, 6]"}) ==
        "inputs: no index: found none, expected an index for one dimension or more");
  CHECK(inferred("topk", {"float32[4, tokens]"}, {{"k", Dim(2)}}) ==
        "float32[4, 2]; int64[4, 2]; max(2, tokens) == tokens");
  CHECK(inferred("topk", {"float32[4, 8]"}, {{"k", Dim(9)}}) == "attrs/k: k of topk: found 9, expected at most 8");
  CHECK(inferred("sort", {"bfloat16[4, tokens]"}, {{"dim", std::int64_t{0}}}) ==
        "bfloat16[4, tokens]; int64[4, tokens]");
}

TEST_CASE("indexing: formulas") {
  CHECK(formula("embedding", {"float32[0, 8]", "int64[2]"}) == "0");
  CHECK(formula("embedding", {"float32[100, 8]", "int64[2, 3]"}) == "v0[{max(min(v1[i0, i1], 99), 0)}, i2]");
  CHECK(formula("gather", {"float32[5, 6]", "int32[5, 2]"}, {{"dim", std::int64_t{1}}}) ==
        "v0[i0, {max(min(int64(v1[i0, i1]), 5), 0)}]");
  CHECK(formula("index_select", {"float32[5, 6]", "int64[tokens]"}, {{"dim", std::int64_t{0}}}) ==
        "v0[{max(min(v1[i0], 4), 0)}, i1]");
}

TEST_CASE("pooling: types") {
  CHECK(inferred("max_pool2d", {"float32[1, 3, 9, tokens]"},
                 {{"kernel_size", Ints{3}}, {"stride", Ints{2}}, {"padding", Ints{1}}}) ==
        "float32[1, 3, 5, (tokens+1)//2]");
  CHECK(inferred("max_pool2d", {"float32[3, 9, 9]"}, {{"kernel_size", Ints{2}}, {"ceil_mode", true}}) ==
        "float32[3, 5, 5]");
  CHECK(inferred("max_pool2d", {"float32[3, 9, 9]"}, {{"kernel_size", Ints{3}}, {"padding", Ints{2}}}) ==
        "attrs/padding: padding is at most half the window: found 2, expected at most 1");
  CHECK(inferred("max_pool1d", {"float32[3, 2]"}, {{"kernel_size", Ints{3}}}) ==
        "attrs/kernel_size: the window of a pooling fits into its padded input: found 3, expected at most 2");
  CHECK(inferred("avg_pool1d", {"int32[3, 9]"}, {{"kernel_size", Ints{3}}}) ==
        "inputs/0: wrong dtype: found int32, expected a float dtype (a cast before it gives one)");
  CHECK(inferred("adaptive_avg_pool2d", {"float32[1, 3, 7, tokens]"}, {{"output_size", Ints{1, 2}}}) ==
        "float32[1, 3, 1, 2]");
  CHECK(inferred("interpolate", {"float32[1, 3, 8, tokens]"}, {{"size", Dims{16, test_dim("2*tokens")}}}) ==
        "float32[1, 3, 16, 2*tokens]");
  CHECK(inferred("interpolate", {"float32[1, 3, 8]"}, {{"size", Dims{16}}, {"mode", std::string("bilinear")}}) ==
        "inputs/0: wrong rank: found float32[1, 3, 8], expected rank 4");
  CHECK(inferred("interpolate", {"float32[1, 3, 8]"}, {{"size", Dims{16}}, {"align_corners", true}}) ==
        "attrs/align_corners: align_corners with mode nearest: found true, expected false, or mode bilinear");
}

TEST_CASE("pooling: formulas") {
  CHECK(formula("max_pool1d", {"float32[3, 8]"}, {{"kernel_size", Ints{3}}, {"padding", Ints{1}}}) ==
        "reduce max[i2<3](select(ge(3*i1+i2-1, 0), v0[i0, 3*i1+i2-1] if ge(3*i1+i2-1, 0), -inf))");
  CHECK(formula("avg_pool1d", {"float32[3, 8]"}, {{"kernel_size", Ints{2}}}) ==
        "div(reduce sum[i2<2](v0[i0, 2*i1+i2]), 2)");
  CHECK(formula("avg_pool1d", {"float32[3, 8]"},
                {{"kernel_size", Ints{3}}, {"padding", Ints{1}}, {"stride", Ints{1}}, {"count_include_pad", false}}) ==
        "div(reduce sum[i2<3](select(and(ge(i1+i2-1, 0), lt(i1+i2-1, 8)), v0[i0, i1+i2-1] if and(ge(i1+i2-1, 0), "
        "lt(i1+i2-1, 8)), 0)), float32(min(8, i1+2)-max(0, i1-1)))");
  CHECK(formula("adaptive_avg_pool2d", {"float32[3, 8, 8]"}, {{"output_size", Ints{1}}}) ==
        "div(reduce sum[i3<8, i4<8](v0[i0, i3, i4]), 64)");
  CHECK(formula("interpolate", {"float32[1, 3, 8]"}, {{"size", Dims{16}}}) == "v0[i0, i1, i2//2]");
  CHECK(formula("interpolate", {"float32[1, 3, tokens]"}, {{"size", Dims{test_dim("2*tokens")}}}) ==
        "v0[i0, i1, i2//2]");
  CHECK(formula("interpolate", {"float32[1, 3, 5]"}, {{"size", Dims{3}}}) == "v0[i0, i1, (5*i2)//3]");
}

TEST_CASE("communication: types") {
  CHECK(inferred("all_reduce", {"bfloat16[tokens, 8]"},
                 {{"group", std::string("tp")}, {"reduce_op", std::string("sum")}}) == "bfloat16[tokens, 8]");
  CHECK(inferred("all_gather", {"bfloat16[tokens, 8]"}, {{"group", std::string("tp")}, {"dim", std::int64_t{0}}}) ==
        "outputs: the output's type is not declared: found no dtype and shape, expected an object with name, dtype and "
        "shape (the size of the group is not known here)");
}
