// Factors that are computed, as products by warpgroups take them: what of them is copied, and where the forms at hand
// are as good or better.
#include "schedule/gemm/warpgroup_gemm_form.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/contraction_of.h"
#include "support/short_model.h"

namespace fusec {
namespace {

struct Found {
  std::optional<GemmForm> at_hand;
  std::vector<WarpgroupGemms> ranking;
  std::vector<WarpgroupGemmForm> best;
};

// Of a model that is one product.
Found found(const std::string& inputs, const std::string& nodes, const std::string& output) {
  const Target target = target_for("sm_90a");
  const Graph graph = test::short_model(inputs, nodes, output);
  const auto [kernel, product] = test::product_of(graph);
  Found made{.at_hand = find_gemm(graph, kernel, product, target), .ranking = {}, .best = {}};
  REQUIRE(made.at_hand);
  const WarpgroupCandidate candidate{&kernel, &product, &*made.at_hand};
  made.ranking = rank_warpgroup_gemms({&candidate, 1}, target);
  made.best = find_warpgroup_gemms({&candidate, 1}, target);
  return made;
}

Found layer(int rows, const char* codes, const char* scales, int group) {
  return found(
      fmt::format("x bfloat16 {},4096; w {} 4096,4096; s {} 4096,{}", rows, codes, scales, 4096 / group),
      fmt::format("d = dequantize w s {{\"dtype\": \"bfloat16\", \"axis\": 1, \"block\": {}}}; y = linear x d", group),
      "y");
}

TEST_CASE("warpgroup gemm: weights that are codes are copied as they lie and computed by one block for itself") {
  for (const auto& [codes, scales, group, bits] : {std::tuple{"int4", "bfloat16", 32, 4},
                                                   {"int4", "float32", 128, 4},
                                                   {"int8", "bfloat16", 128, 8},
                                                   {"float4_e2m1fn", "float8_e8m0fnu", 32, 4},
                                                   {"float8_e4m3fn", "float32", 128, 8}}) {
    INFO(codes);
    const Found f = layer(2048, codes, scales, group);
    REQUIRE(f.best.size() == 1);
    const WarpgroupGemmForm& form = f.best[0];
    CHECK(!form.loops[0].left[0].transformed);
    REQUIRE(form.loops[0].right[0].transformed);
    CHECK(form.loops[0].computes());
    CHECK(form.loops[0].block == 0);
    CHECK(form.tiles.cluster == 1);
    CHECK(copied_bytes(form) == std::int64_t{form.tiles.columns} * form.k() * bits / 8);
    CHECK(shared_bytes({&form, 1}) <= target_for("sm_90a").shared_bytes_per_block);
    for (const WarpgroupGemms& way : f.ranking) CHECK(way.forms[0].tiles.cluster == 1);
  }
}

TEST_CASE("warpgroup gemm: few rows of codes stay with warps") {
  CHECK(layer(16, "int4", "bfloat16", 128).best.empty());
  CHECK(layer(48, "int4", "bfloat16", 128).best.empty());
  CHECK(!layer(1024, "int4", "bfloat16", 128).best.empty());
}

TEST_CASE("warpgroup gemm: scales of sums hold for whole tiles of the depth") {
  const auto scaled = [](int group) {
    return found(fmt::format("x bfloat16 2048,4096; w int4 4096,4096; s float32 4096,{}", 4096 / group),
                 fmt::format("f = cast x {{\"dtype\": \"float32\"}}; d = dequantize w s {{\"dtype\": \"float32\", "
                             "\"axis\": 1, \"block\": {}}}; p = linear f d; y = cast p {{\"dtype\": \"bfloat16\"}}",
                             group),
                 "y");
  };
  CHECK(scaled(32).ranking.empty());
  const Found f = scaled(64);
  REQUIRE(!f.ranking.empty());
  CHECK(f.ranking[0].forms[0].scales_in_stages());
  CHECK(f.ranking[0].forms[0].loops[0].computes());
}

}  // namespace
}  // namespace fusec
