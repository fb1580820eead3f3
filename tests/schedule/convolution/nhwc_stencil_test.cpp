// Vectors of channels: whole words of memory, whatever else a window reads.
#include "schedule/convolution/nhwc_stencil.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "schedule/lowering/lower_group.h"
#include "support/short_model.h"

using namespace fusec;
using fusec::test::short_model;

namespace {

std::optional<NhwcStencil> windows_of(const std::string& mask_shape, int channels) {
  const std::string c = std::to_string(channels);
  const Graph graph =
      short_model("m bool " + mask_shape + "," + c + "; x float32 2," + c,
                  "z = full {\"shape\": [1, 2, " + c +
                      "], \"value\": 0, \"dtype\": \"float32\"}; u = unsqueeze x {\"dim\": 0}; "
                      "both = concat z u {\"dim\": 0}; kept = where m both z; y = sum kept {\"dim\": [0, 1]}",
                  "y");
  std::vector<NodeId> all;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) all.push_back(n);
  for (const LoweredUnit& unit : lower_group(graph, all, graph.outputs))
    if (unit.kind == LoweredUnit::Kind::kKernel) return find_nhwc_stencil(unit.kernel, graph, Target{});
  return std::nullopt;
}

}  // namespace

TEST_CASE("a staged operand narrower than the others has whole words in a vector too") {
  CHECK(!windows_of("2,2", 2));  // two bools are two bytes
  const auto stencil = windows_of("2,2", 4);
  REQUIRE(stencil);
  CHECK(stencil->lanes == 4);
  CHECK(std::ranges::any_of(stencil->loads, &WindowLoad::staged));
}
