// Which tiles warps make of a convolution.
#include <doctest/doctest.h>

#include <string>

#include "analysis/convolution_form.h"
#include "analysis/kernel_forms.h"
#include "analysis/lower.h"
#include "ir/text.h"

namespace fusec::test {
namespace {

struct Layer {
  Graph graph;
  Kernel kernel;
  FormOfKernel form;

  explicit Layer(const std::string& text) : graph(parse_graph_text(text)) {
    std::vector<NodeId> nodes;
    for (NodeId n = 0; n < graph.nodes.size(); ++n) nodes.push_back(n);
    std::vector<LoweredUnit> units = lower_group(graph, nodes, graph.outputs);
    REQUIRE(units.size() == 1);
    kernel = std::move(units[0].kernel);
    form = form_of(kernel);
    REQUIRE(form.product);
  }

  std::optional<ConvolutionForm> tiled(const std::string& arch) const {
    return find_convolution(graph, form.rewritten ? *form.rewritten : kernel, *form.product, target_for(arch));
  }
};

}  // namespace

TEST_CASE("convolutions: no tile is half empty so that more warps are busy") {
  // Weights of a transposed convolution as they are laid out; a few blocks for each phase.
  const Layer layer(R"(model "m"
input x: float16[1, 64, 8, 16]
input w: float16[64, 8, 8, 64]
v: float16[64, 64, 8, 8] = permute(w, dims=[0, 3, 1, 2])
y: float16[1, 64, 32, 64] = conv_transpose2d(x, v, stride=[4, 4], padding=[2, 2])
return y
)");
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const auto tiled = layer.tiled(arch);
    REQUIRE(tiled);
    CHECK(tiled->tiles.rows == 64);
  }
}

}  // namespace fusec::test
