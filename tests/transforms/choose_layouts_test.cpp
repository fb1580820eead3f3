// Which values between convolutions lie with their channels last, and what becomes of graph and plan.
#include "transforms/choose_layouts.h"

#include <doctest/doctest.h>

#include "analysis/annotate.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "schedule/lowering/trial_lowering.h"
#include "transforms/fuse.h"
#include "transforms/merge_groups.h"
#include "transforms/prepare.h"

namespace fusec::test {
namespace {

struct Chosen {
  Graph graph;
  FusionPlan plan;
  std::optional<PlanWithLayouts> laid;

  explicit Chosen(const std::string& text) : graph(parse_graph_text(text)) {
    const std::vector<OpPattern> kinds = annotate(graph, pattern_source(Strategy::kFull));
    plan = fuse(graph, kinds, {});
    TrialMemory memory;
    merge_forward(graph, kinds, plan, memory);
    prepare_groups(graph, plan);
    merge_siblings(graph, kinds, plan, memory);
    name_groups(graph, plan);
    laid = choose_layouts(graph, plan, TrialMemory(target_for("sm_80")));
    if (!laid) return;
    verify(laid->graph, "layouts");
    verify_laid_out(graph, plan, *laid);
  }

  // The permutations that were added, in order.
  std::string added() const {
    std::string names;
    for (const Node& node : laid->graph.nodes)
      if (graph.find_node(node.name) == kNone) names += (names.empty() ? "" : " ") + node.name;
    return names;
  }
};

const std::string kTwo = R"(model "m"
input x: float16[8, 64, 56, 56]
constant w: float16[64, 64, 3, 3]
constant v: float16[64, 64, 3, 3]
p: float16[8, 64, 56, 56] = conv2d(x, w, stride=[1, 1], padding=[1, 1])
r: float16[8, 64, 56, 56] = relu(p)
q: float16[8, 64, 56, 56] = conv2d(r, v, stride=[1, 1], padding=[1, 1])
y: float16[8, 64, 56, 56] = relu(q)
return )";

}  // namespace

TEST_CASE("layouts: what is between convolutions, and the weights that read it") {
  const Chosen c(kTwo + "y\n");
  REQUIRE(c.laid);
  CHECK(c.added() == "v_channels_last v_channels_first r_channels_last r_channels_first");
  const Graph& graph = c.laid->graph;
  CHECK(graph.tensor(graph.find_value("r_channels_last")).shape == Shape{8, 56, 56, 64});
  // The constant is laid out once, in a group of its own behind the others.
  CHECK(c.laid->plan.groups.size() == c.plan.groups.size() + 1);
  CHECK(c.laid->plan.groups.back().prepared);
  // r lies with its channels last: its group makes that, and no group makes r for another.
  const std::vector<GroupInterface> interfaces = group_interfaces(graph, c.laid->plan);
  CHECK(interfaces[0].outputs == std::vector<ValueId>{graph.find_value("r_channels_last")});
  CHECK(std::ranges::find(interfaces[1].inputs, graph.find_value("r_channels_last")) != interfaces[1].inputs.end());
}

TEST_CASE("layouts: inputs and outputs stay, and so does a graph that has nothing else") {
  CHECK(!Chosen(kTwo + "y, r\n").laid);
  CHECK(!Chosen(R"(model "m"
input x: float16[8, 64, 56, 56]
r: float16[8, 64, 56, 56] = relu(x)
return r
)")
             .laid);
}

TEST_CASE("layouts: weights of what is transposed, whose image stays, without warpgroups too") {
  const Chosen c(R"(model "m"
input x: float16[1, 128, 32, 32]
constant w: float16[128, 64, 4, 4]
y: float16[1, 64, 64, 64] = conv_transpose2d(x, w, stride=[2, 2], padding=[1, 1])
return y
)");
  REQUIRE(c.laid);
  CHECK(c.added() == "w_channels_last w_channels_first");
  CHECK(c.laid->graph.tensor(c.laid->graph.find_value("w_channels_last")).shape == Shape{64, 4, 4, 128});
}

TEST_CASE("layouts: through pooling and sums, up to what reads rows of channels first") {
  const Chosen c(R"(model "m"
input x: float16[8, 64, 56, 56]
constant w: float16[64, 64, 3, 3]
constant v: float16[64, 64, 3, 3]
constant u: float16[64, 64, 3, 3]
p: float16[8, 64, 56, 56] = conv2d(x, w, stride=[1, 1], padding=[1, 1])
m: float16[8, 64, 28, 28] = max_pool2d(p, kernel_size=[3, 3], stride=[2, 2], padding=[1, 1])
q: float16[8, 64, 28, 28] = conv2d(m, v, stride=[1, 1], padding=[1, 1])
s: float16[8, 64, 28, 28] = add(q, m)
t: float16[8, 64, 28, 28] = conv2d(s, u, stride=[1, 1], padding=[1, 1])
f: float16[8, 50176] = flatten(t, start_dim=1)
n: float16[8, 50176] = softmax(f, dim=-1)
return n
)");
  REQUIRE(c.laid);
  for (const char* value : {"p_channels_last", "m_channels_last", "s_channels_last", "u_channels_last"})
    CHECK(c.laid->graph.find_value(value) != kNone);
  CHECK(c.laid->graph.find_value("t_channels_last") == kNone);
}

}  // namespace fusec::test
