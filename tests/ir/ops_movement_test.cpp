// Type inference and formulas of the movement family.
#include <doctest/doctest.h>

#include "support/op_call.h"

using namespace fusec;
using namespace fusec::test;

namespace {
using Ints = std::vector<std::int64_t>;
using Dims = std::vector<Dim>;
}  // namespace

TEST_CASE("reshape: types") {
  CHECK(inferred("reshape", {"float32[2, 3, 4]"}, {{"shape", Dims{6, -1}}}) == "float32[6, 4]");
  CHECK(inferred("reshape", {"float32[tokens, 4096]"}, {{"shape", Dims{test_dim("tokens"), 32, -1}}}) ==
        "float32[tokens, 32, 128]");
  CHECK(inferred("reshape", {"float32[tokens, 32, 128]"}, {{"shape", Dims{test_dim("tokens"), 4096}}}) ==
        "float32[tokens, 4096]");
  CHECK(inferred("reshape", {"float32[2*tokens+2, 6]"}, {{"shape", Dims{-1, 3}}}) == "float32[4*tokens+4, 3]");
  CHECK(inferred("reshape", {"float32[tokens, 10]"}, {{"shape", Dims{-1, 4}}}) ==
        "float32[(10*tokens)//4, 4]; (10*tokens)%4 == 0");
  CHECK(inferred("reshape", {"float32[tokens, 10]"}, {{"shape", Dims{5, test_dim("tokens")}}}) ==
        "attrs/shape: a reshape keeps the number of elements: found [5, tokens], expected as many elements as [tokens, "
        "10]");
  CHECK(inferred("reshape", {"float32[tokens, 3]"}, {{"shape", Dims{7, -1}}}) ==
        "float32[7, (3*tokens)//7]; (3*tokens)%7 == 0");
  CHECK(inferred("reshape", {"float32[wide, 3]"}, {{"shape", Dims{-1, 16}}}) == "float32[(3*wide)//16, 16]");
  CHECK(inferred("reshape", {"float32[2, 3]"}, {{"shape", Dims{4, 2}}}) ==
        "attrs/shape: a reshape keeps the number of elements: found [4, 2], expected as many elements as [2, 3]");
  CHECK(inferred("reshape", {"float32[2, 3]"}, {{"shape", Dims{4, -1}}}) ==
        "attrs/shape: a reshape keeps the number of elements: found [4, -1], expected as many elements as [2, 3]");
  CHECK(inferred("reshape", {"float32[2, 3]"}, {{"shape", Dims{-1, -1}}}) ==
        "attrs/shape: -1 stands twice: found [-1, -1], expected one -1 at most");
  CHECK(inferred("reshape", {"float32[2, 3]"}, {{"shape", Dims{-2, 3}}}) ==
        "attrs/shape: negative dimension: found -2, expected a dimension of 0 or more, or -1");
  CHECK(inferred("reshape", {"float32[0, 3]"}, {{"shape", Dims{-1, 0}}}) ==
        "attrs/shape: -1 is ambiguous beside a dimension of 0: found [-1, 0], expected the dimension itself");
  CHECK(inferred("reshape", {"float32[0, 3]"}, {{"shape", Dims{-1, 5}}}) == "float32[0, 5]");
  CHECK(inferred("reshape", {"float32[0, 3]"}, {{"shape", Dims{2, 5}}}) ==
        "attrs/shape: a reshape keeps the number of elements: found [2, 5], expected as many elements as [0, 3]");
  CHECK(inferred("reshape", {"float32[]"}, {{"shape", Dims{1, 1}}}) == "float32[1, 1]");
  CHECK(inferred("flatten", {"float32[2, tokens, 4]"}, {{"start_dim", std::int64_t{1}}}) == "float32[2, 4*tokens]");
  CHECK(inferred("flatten", {"float32[]"}) == "float32[1]");
  CHECK(inferred("flatten", {"float32[2, 3]"}, {{"start_dim", std::int64_t{1}}, {"end_dim", std::int64_t{0}}}) ==
        "attrs/start_dim: start_dim comes after end_dim: found 1, expected at most 0");
}

TEST_CASE("reordering: types") {
  CHECK(inferred("permute", {"float32[2, tokens, 4]"}, {{"dims", Ints{2, 0, 1}}}) == "float32[4, 2, tokens]");
  CHECK(inferred("permute", {"float32[2, 3]"}, {{"dims", Ints{0, 0}}}) ==
        "attrs/dims: no permutation of the dimensions: found [0, 0], expected each of 2 dimensions once");
  CHECK(inferred("permute", {"float32[2, 3]"}, {{"dims", Ints{0}}}) ==
        "attrs/dims: no permutation of the dimensions: found [0], expected each of 2 dimensions once");
  CHECK(inferred("transpose", {"float32[2, 3, 4]"}, {{"dim0", std::int64_t{-1}}, {"dim1", std::int64_t{0}}}) ==
        "float32[4, 3, 2]");
  CHECK(inferred("transpose", {"float32[2, 3]"}, {{"dim0", std::int64_t{2}}, {"dim1", std::int64_t{0}}}) ==
        "attrs/dim0: dimension out of range: found 2, expected -2 to 1");
  CHECK(inferred("squeeze", {"float32[1, tokens, 1, 4]"}) == "float32[tokens, 4]");
  CHECK(inferred("squeeze", {"float32[1, tokens, 1, 4]"}, {{"dim", Ints{0, 1}}}) == "float32[tokens, 1, 4]");
  CHECK(inferred("unsqueeze", {"float32[2, 3]"}, {{"dim", std::int64_t{-1}}}) == "float32[2, 3, 1]");
  CHECK(inferred("unsqueeze", {"float32[2, 3]"}, {{"dim", std::int64_t{3}}}) ==
        "attrs/dim: dimension out of range: found 3, expected -3 to 2");
  CHECK(inferred("expand", {"float32[1, 4]"}, {{"shape", Dims{2, test_dim("tokens"), -1}}}) == "float32[2, tokens, 4]");
  CHECK(inferred("expand", {"float32[3, 4]"}, {{"shape", Dims{2, 4}}}) ==
        "attrs/shape: shape does not expand: found [2, 4], expected a shape that [3, 4] broadcasts to");
  CHECK(inferred("expand", {"float32[tokens, 4]"}, {{"shape", Dims{test_dim("wide"), 4}}}) ==
        "float32[wide, 4]; tokens == wide");
  CHECK(inferred("expand", {"float32[4]"}, {{"shape", Dims{-1, 4}}}) ==
        "attrs/shape: shape does not expand: found [-1, 4], expected a shape that [4] broadcasts to");
}

TEST_CASE("slice, select, split, chunk: types") {
  CHECK(inferred("slice", {"float32[10]"}, {{"start", Dim(2)}, {"end", Dim(-1)}, {"step", std::int64_t{3}}}) ==
        "float32[3]");
  CHECK(inferred("slice", {"float32[tokens, 4]"}, {{"start", Dim(-3)}}) == "float32[min(3, tokens), 4]");
  CHECK(inferred("slice", {"float32[tokens, 4]"}, {{"end", Dim(5)}}) == "float32[min(5, tokens), 4]");
  CHECK(inferred("slice", {"float32[tokens, 4]"}, {{"start", Dim(1)}, {"end", Dim(test_dim("tokens"))}}) ==
        "float32[tokens-1, 4]");
  CHECK(inferred("slice", {"float32[tokens+3, 4]"}, {{"start", Dim(test_dim("tokens"))}}) == "float32[3, 4]");
  CHECK(inferred("slice", {"float32[tokens]"}, {{"step", std::int64_t{2}}}) == "float32[(tokens+1)//2]");
  CHECK(inferred("slice", {"float32[10]"}, {{"start", Dim(8)}, {"end", Dim(3)}}) == "float32[0]");
  CHECK(inferred("slice", {"float32[10]"}, {{"step", std::int64_t{0}}}) ==
        "attrs/step: step of a slice: found 0, expected 1 or more");
  CHECK(inferred("slice", {"float32[]"}) == "inputs/0: wrong rank: found float32[], expected rank 1 or more");
  CHECK(inferred("select", {"float32[4, tokens]"}, {{"dim", std::int64_t{0}}, {"index", Dim(-1)}}) ==
        "float32[tokens]");
  CHECK(inferred("select", {"float32[4, tokens]"}, {{"dim", std::int64_t{1}}, {"index", Dim(-1)}}) == "float32[4]");
  CHECK(inferred("select", {"float32[4, tokens]"}, {{"dim", std::int64_t{1}}, {"index", Dim(5)}}) ==
        "float32[4]; max(6, tokens) == tokens");
  CHECK(inferred("select", {"float32[4, tokens]"}, {{"dim", std::int64_t{0}}, {"index", Dim(4)}}) ==
        "attrs/index: index out of range: found 4, expected -4 to 3");
  CHECK(inferred("split", {"float32[10]"}, {{"split_sizes", Dim(4)}}) == "float32[4]; float32[4]; float32[2]");
  CHECK(inferred("split", {"float32[10]"}, {{"split_sizes", Dims{4}}}) ==
        "attrs/split_sizes: the dimension and the sum of split_sizes differ: found 4, expected 10");
  CHECK(inferred("split", {"float32[10]"}, {{"split_sizes", Dims{4, 6}}}) == "float32[4]; float32[6]");
  CHECK(inferred("split", {"float32[2*tokens]"}, {{"split_sizes", Dim(test_dim("tokens"))}}) ==
        "float32[tokens]; float32[tokens]");
  CHECK(inferred("split", {"float32[tokens]"}, {{"split_sizes", Dim(4)}}) ==
        "attrs/split_sizes: the number of pieces of a split depends on a symbol: found (tokens+3)//4, expected a fixed "
        "number (outputs that the node declares fix it)");
  CHECK(inferred("split", {"float32[tokens+4]"}, {{"split_sizes", Dims{test_dim("tokens"), 4}}}) ==
        "float32[tokens]; float32[4]");
  CHECK(inferred("split", {"float32[10]"}, {{"split_sizes", Dim(0)}}) ==
        "attrs/split_sizes: size of the pieces of a split: found 0, expected 1 or more");
  CHECK(inferred("chunk", {"float32[5]"}, {{"chunks", std::int64_t{4}}}) == "float32[2]; float32[2]; float32[1]");
  CHECK(inferred("chunk", {"float32[tokens, 6]"}, {{"chunks", std::int64_t{2}}}) ==
        "float32[(tokens+1)//2, 6]; float32[tokens-((tokens+1)//2), 6]; 2 == ((tokens-1)//((tokens+1)//2))+1");
  CHECK(inferred("chunk", {"float32[2*tokens]"}, {{"chunks", std::int64_t{2}}}) == "float32[tokens]; float32[tokens]");
  CHECK(inferred("chunk", {"float32[0]"}, {{"chunks", std::int64_t{3}}}) == "float32[0]; float32[0]; float32[0]");
  CHECK(inferred("chunk", {"float32[5]"}, {{"chunks", std::int64_t{0}}}) ==
        "attrs/chunks: number of chunks: found 0, expected 1 or more");
}

TEST_CASE("concat, stack: types") {
  CHECK(inferred("concat", {"float32[2, 3]", "float32[tokens, 3]"}, {{"dim", std::int64_t{0}}}) ==
        "float32[tokens+2, 3]");
  CHECK(inferred("concat", {"float32[2, 3]", "float16[2, 4]"}, {{"dim", std::int64_t{-1}}}) == "float32[2, 7]");
  CHECK(inferred("concat", {"float32[2, 3]", "float32[3, 3]"}, {{"dim", std::int64_t{1}}}) ==
        "inputs/1: dimensions 0 of a concat differ: found 3, expected 2");
  CHECK(inferred("concat", {"float32[2, 3]", "float32[0]"}) == "float32[2, 3]");
  CHECK(inferred("concat", {"float32[2, 3]", "float32[3]"}) ==
        "inputs/1: wrong rank: found float32[3], expected rank 2");
  CHECK(inferred("concat", {"float32[]"}) == "inputs/0: wrong rank: found float32[], expected rank 1 or more");
  CHECK(inferred("stack", {"float32[2, 3]", "float32[2, 3]"}, {{"dim", std::int64_t{-1}}}) == "float32[2, 3, 2]");
  CHECK(inferred("stack", {"float32[2, 3]", "float32[3, 2]"}) ==
        "inputs/1: the shapes of a stack differ: found 3, expected 2");
}

TEST_CASE("padding, rolling, repeating: types") {
  CHECK(inferred("pad", {"float32[2, tokens]"}, {{"pad", Dims{1, 2}}}) == "float32[2, tokens+3]");
  CHECK(inferred("pad", {"float32[2, tokens]"}, {{"pad", Dims{0, -2}}}) ==
        "float32[2, tokens-2]; max(0, tokens-2) == tokens-2");
  CHECK(inferred("pad", {"float32[2, 3]"}, {{"pad", Dims{-2, -2}}}) ==
        "attrs/pad: the padding of dimension 1 with mode constant crops more than there is: found -1, expected 0 or "
        "more");
  CHECK(inferred("pad", {"float32[64]"}, {{"pad", Dims{INT64_MIN, INT64_MAX}}}) ==
        "attrs/pad: padding out of range: found -9223372036854775808, expected at most 2^61 either way");
  CHECK(inferred("pad", {"float32[2, 3]"}, {{"pad", Dims{1}}}) ==
        "attrs/pad: wrong number of paddings: found 1, expected an even number up to 4");
  CHECK(inferred("pad", {"float32[2, 3]"}, {{"pad", Dims{3, 0}}, {"mode", std::string("reflect")}}) ==
        "attrs/pad: the padding of dimension 1 with mode reflect: found 4, expected at most 3");
  CHECK(inferred("flip", {"float32[2, 3]"}, {{"dims", Ints{0, 0}}}) ==
        "attrs/dims: dimension given twice: found 0, expected each dimension at most once");
  CHECK(inferred("roll", {"float32[2, 3]"}, {{"shifts", Ints{1, 2}}, {"dims", Ints{0}}}) ==
        "attrs/shifts: wrong number of shifts: found 2, expected 1");
  CHECK(inferred("repeat", {"float32[2, tokens]"}, {{"repeats", Dims{3, 1, 2}}}) == "float32[3, 2, 2*tokens]");
  CHECK(inferred("repeat", {"float32[2, 3]"}, {{"repeats", Dims{3}}}) ==
        "attrs/repeats: too few repeats: found 1, expected one for each of 2 dimensions or more");
  CHECK(inferred("repeat_interleave", {"float32[2, tokens]"}, {{"repeats", Dim(3)}}) == "float32[6*tokens]");
  CHECK(inferred("repeat_interleave", {"float32[2, 3]"}, {{"repeats", Dim(-1)}}) ==
        "attrs/repeats: negative number of repeats: found -1, expected 0 or more");
  CHECK(inferred("tril", {"float32[3]"}) == "inputs/0: wrong rank: found float32[3], expected rank 2 or more");
}

TEST_CASE("reshape: formulas") {
  CHECK(formula("reshape", {"float32[30, 2, 2]"}, {{"shape", Dims{5, 24}}}) == "v0[6*i0+(i1//4), (i1//2)%2, i1%2]");
  CHECK(formula("reshape", {"float32[2, 3, 4]"}, {{"shape", Dims{24}}}) == "v0[i0//12, (i0//4)%3, i0%4]");
  CHECK(formula("reshape", {"float32[tokens, 4096]"}, {{"shape", Dims{test_dim("tokens"), 32, 128}}}) ==
        "v0[i0, 128*i1+i2]");
  CHECK(formula("reshape", {"float32[tokens, 32, 128]"}, {{"shape", Dims{test_dim("tokens"), 4096}}}) ==
        "v0[i0, i1//128, i1%128]");
  CHECK(formula("reshape", {"float32[2, tokens, 64]"}, {{"shape", Dims{test_dim("2*tokens"), 64}}}) ==
        "v0[i0//tokens, i0%tokens, i1]");
  CHECK(formula("reshape", {"float32[2*tokens, 64]"}, {{"shape", Dims{2, test_dim("tokens"), 64}}}) ==
        "v0[tokens*i0+i1, i2]");
  CHECK(formula("reshape", {"float32[2, 3, 4]"}, {{"shape", Dims{4, 6}}}) ==
        "v0[i0//2, ((6*i0+i1)//4)%3, (6*i0+i1)%4]");
  CHECK(formula("reshape", {"float32[1, 6, 1]"}, {{"shape", Dims{2, 1, 3}}}) == "v0[0, 3*i0+i2, 0]");
  CHECK(formula("reshape", {"float32[tokens+1, 8, 8]"}, {{"shape", Dims{test_dim("tokens+1"), 64}}}) ==
        "v0[i0, i1//8, i1%8]");
}

TEST_CASE("reordering: formulas") {
  CHECK(formula("permute", {"float32[2, tokens, 4]"}, {{"dims", Ints{2, 0, 1}}}) == "v0[i1, i2, i0]");
  CHECK(formula("squeeze", {"float32[1, tokens, 1, 4]"}) == "v0[0, i0, 0, i1]");
  CHECK(formula("expand", {"float32[1, 4]"}, {{"shape", Dims{2, test_dim("tokens"), 4}}}) == "v0[0, i2]");
}

TEST_CASE("slice, select, split, chunk: formulas") {
  CHECK(formula("slice", {"float32[10]"}, {{"start", Dim(2)}, {"end", Dim(-1)}, {"step", std::int64_t{3}}}) ==
        "v0[3*i0+2]");
  CHECK(formula("slice", {"float32[tokens, 4]"}, {{"start", Dim(-3)}}) == "v0[i0+max(0, tokens-3), i1]");
  CHECK(formula("select", {"float32[4, tokens]"}, {{"dim", std::int64_t{1}}, {"index", Dim(-1)}}) ==
        "v0[i0, tokens-1]");
}

TEST_CASE("concat, stack: formulas") {
  CHECK(formula("concat", {"float32[2, 3]", "float32[tokens, 3]"}, {{"dim", std::int64_t{0}}}) ==
        "select(lt(i0, 2), v0[i0, i1] if lt(i0, 2), v1[i0-2, i1] if ge(i0-2, 0))");
  CHECK(formula("concat", {"float16[4]", "int32[5]", "float16[6]"}) ==
        "select(lt(i0, 4), v0[i0] if lt(i0, 4), select(and(ge(i0-4, 0), lt(i0-4, 5)), float16(float32(v1[i0-4] if "
        "and(ge(i0-4, 0), lt(i0-4, 5)))), v2[i0-9] if ge(i0-9, 0)))");
  CHECK(formula("stack", {"float32[3]", "float32[3]"}) ==
        "select(lt(i0, 1), v0[i1] if lt(i0, 1), v1[i1] if ge(i0-1, 0))");
}

TEST_CASE("padding, rolling, repeating: formulas") {
  CHECK(formula("pad", {"float32[6]"}, {{"pad", Dims{1, 2}}}) ==
        "select(and(ge(i0-1, 0), lt(i0-1, 6)), v0[i0-1] if and(ge(i0-1, 0), lt(i0-1, 6)), 0)");
  CHECK(formula("pad", {"float32[6]"}, {{"pad", Dims{1, 2}}, {"mode", std::string("reflect")}}) ==
        "v0[min(-max(-i0+1, i0-1)+10, max(-i0+1, i0-1))]");
  CHECK(formula("pad", {"float32[6]"}, {{"pad", Dims{1, 2}}, {"mode", std::string("replicate")}}) ==
        "v0[min(5, max(0, i0-1))]");
  CHECK(formula("pad", {"float32[6]"}, {{"pad", Dims{1, 2}}, {"mode", std::string("circular")}}) == "v0[(i0+5)%6]");
  CHECK(formula("flip", {"float32[6]"}, {{"dims", Ints{0}}}) == "v0[-i0+5]");
  CHECK(formula("roll", {"float32[6]"}, {{"shifts", Ints{2}}, {"dims", Ints{0}}}) == "v0[(i0+4)%6]");
  CHECK(formula("roll", {"float32[2, 3]"}, {{"shifts", Ints{1}}}) == "v0[((3*i0+i1+5)%6)//3, (i1+2)%3]");
  CHECK(formula("repeat", {"float32[3]"}, {{"repeats", Dims{2, 4}}}) == "v0[i1%3]");
  CHECK(formula("repeat_interleave", {"float32[2, 3]"}, {{"repeats", Dim(2)}, {"dim", std::int64_t{1}}}) ==
        "v0[i0, i1//2]");
  CHECK(formula("tril", {"float32[4, 4]"}, {{"diagonal", std::int64_t{1}}}) ==
        "select(ge(i0-i1+1, 0), v0[i0, i1] if ge(i0-i1+1, 0), 0)");
  CHECK(formula("triu", {"float32[4, 4]"}) == "select(ge(-i0+i1, 0), v0[i0, i1] if ge(-i0+i1, 0), 0)");
}
