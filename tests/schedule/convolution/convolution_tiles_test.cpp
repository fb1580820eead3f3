// Which tiles warps make of a convolution, and which convolutions a block's windows are better for.
#include <doctest/doctest.h>

#include <string>

#include "ir/text.h"
#include "schedule/gemm/convolution_form.h"
#include "schedule/kernel_forms.h"
#include "schedule/lowering/lower_group.h"
#include "schedule/plan/kernel_planner.h"

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
    REQUIRE(form.contraction);
  }

  std::optional<ConvolutionForm> tiled(const std::string& arch) const {
    return find_convolution(graph, form.rewritten ? *form.rewritten : kernel, *form.contraction, target_for(arch));
  }
  std::optional<GroupedImplicitGemm> windows(const std::string& arch) const {
    const Target target = target_for(arch);
    return best_grouped_implicit_gemm(KernelPlanner(kernel, form, graph, target));
  }
};

// A convolution of planes, or of images whose channels lie last.
std::string convolved(int channels, int outputs, int kernel, int groups, bool last, int padding = 1) {
  const std::string c = std::to_string(channels), o = std::to_string(outputs), k = std::to_string(kernel);
  const std::string p = std::to_string(padding);
  return "model \"m\"\ninput x: float16[" + (last ? "1, 48, 64, " + c : "1, " + c + ", 48, 64") +
         "]\ninput w: float16[" + o + ", " + std::to_string(channels / groups) + ", " + k + ", " + k + "]\n" +
         (last ? "i: float16[1, " + c + ", 48, 64] = permute(x, dims=[0, 3, 1, 2])\n" : "") + "p: float16[1, " + o +
         ", 48, 64] = conv2d(" + (last ? "i" : "x") + ", w, padding=[" + p + ", " + p +
         "], groups=" + std::to_string(groups) + ")\n" +
         (last ? "y: float16[1, 48, 64, " + o + "] = permute(p, dims=[0, 2, 3, 1])\nreturn y\n" : "return p\n");
}

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

TEST_CASE("group windows: channels first as well as last, and few results of one group") {
  for (const char* arch : {"sm_80", "sm_90a"})
    for (const bool last : {false, true}) {
      const auto groups = Layer(convolved(64, 64, 3, 8, last)).windows(arch);
      REQUIRE(groups);
      CHECK(groups->groups == 8);
      CHECK(groups->image_is_nchw == !last);
      CHECK(groups->results_are_nchw == !last);
      CHECK(groups->width == 8);
      const auto few = Layer(convolved(128, 3, 3, 1, last)).windows(arch);
      REQUIRE(few);
      CHECK(few->groups == 1);
      CHECK(few->members == 3);
      CHECK(few->image_is_nchw == !last);
    }
}

TEST_CASE("group windows: not of one group of many results, nor of points") {
  for (const bool last : {false, true}) {
    CHECK(!Layer(convolved(128, 128, 3, 1, last)).windows("sm_80"));
    CHECK(!Layer(convolved(128, 24, 3, 1, last)).windows("sm_80"));
    CHECK(!Layer(convolved(128, 3, 1, 1, last, 0)).windows("sm_80"));
  }
}

TEST_CASE("group windows: not where they go backwards, each tap with places of its own") {
  const Layer layer(R"(model "m"
input x: float16[1, 64, 48, 64]
input w: float16[64, 8, 3, 3]
y: float16[1, 8, 48, 64] = conv_transpose2d(x, w, padding=[1, 1])
return y
)");
  CHECK(!layer.windows("sm_80"));
}

}  // namespace fusec::test
