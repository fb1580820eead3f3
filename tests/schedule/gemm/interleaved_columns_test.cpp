// Two sums whose columns take turns in one matrix: when they are one, and when each has its own factor.
#include "schedule/gemm/interleaved_columns.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "schedule/gemm/gemm_form.h"
#include "support/contraction_of.h"
#include "support/short_model.h"

namespace fusec {
namespace {

struct Found {
  std::optional<InterleavedColumns> pairs;
  std::optional<GemmForm> form;
};

// Of a model that is one product.
Found found(const std::string& inputs, const std::string& nodes) {
  const Graph graph = test::short_model(inputs, nodes, "y");
  const auto [kernel, contraction] = test::product_of(graph);
  return {find_interleaved_columns(kernel, contraction), find_gemm(graph, kernel, contraction, target_for("sm_80"))};
}

std::string turns(const char* first, const char* second) {
  return fmt::format(
      "p = matmul x w; g = slice p {{\"dim\": -1, \"start\": {}, \"step\": 2}}; "
      "u = slice p {{\"dim\": -1, \"start\": {}, \"step\": 2}}; s = silu g; y = mul s u",
      first, second);
}

TEST_CASE("paired columns: two sums of every second column are one, whichever is first") {
  for (const auto& [first, second] : {std::pair{"0", "1"}, {"1", "0"}}) {
    const Found f = found("x bfloat16 256,128; w bfloat16 128,512", turns(first, second));
    REQUIRE(f.pairs);
    CHECK(f.pairs->even != f.pairs->odd);
    CHECK(f.pairs->contraction.loops[0].right.size() == 1);
    REQUIRE(f.form);
    CHECK(f.form->pairs);
    CHECK(!f.form->loops[0].right[0].k_major);
    CHECK(!f.form->loops[0].right[0].transformed());
    CHECK(f.form->tiles.warp_columns >= 32);
  }
}

TEST_CASE("paired columns: codes of a matrix and their scales go with its columns") {
  const Found f = found("x bfloat16 256,128; c int4 128,512; f bfloat16 4,512",
                        "w = dequantize c f {\"dtype\": \"bfloat16\", \"axis\": 0, \"block\": 32}; " + turns("0", "1"));
  REQUIRE(f.form);
  CHECK(f.form->pairs);
  CHECK(f.form->loops[0].right[0].transformed());
}

TEST_CASE("paired columns: halves, and matrices whose lines lie along the depth, keep a factor for each sum") {
  const Found halves = found("x bfloat16 256,128; w bfloat16 128,512",
                             "p = matmul x w; g = slice p {\"dim\": -1, \"start\": 0, \"end\": 256}; "
                             "u = slice p {\"dim\": -1, \"start\": 256, \"end\": 512}; s = silu g; y = mul s u");
  CHECK(!halves.pairs);
  REQUIRE(halves.form);
  CHECK(!halves.form->pairs);
  const Found along =
      found("x bfloat16 256,128; v bfloat16 512,128", "w = transpose v {\"dim0\": 0, \"dim1\": 1}; " + turns("0", "1"));
  REQUIRE(along.form);
  CHECK(!along.form->pairs);
  CHECK(along.form->loops[0].right.size() == 2);
}

}  // namespace
}  // namespace fusec
