// The phases after the three: what becomes one group, what stays apart and why, and that no circle is ever closed.
#include "transforms/merge_groups.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <random>

#include "analysis/annotate.h"
#include "analysis/group_components.h"
#include "analysis/group_graph.h"
#include "ir/text.h"
#include "schedule/lowering/launch_cost.h"
#include "support/random_graph.h"
#include "transforms/fuse.h"
#include "transforms/verify_plan.h"

namespace fusec::test {
namespace {

struct Merged {
  Graph graph;
  std::vector<OpPattern> kinds;
  FusionPlan plan;

  explicit Merged(const std::string& text, std::uint32_t max_fused_ops = 256,
                  const std::vector<const char*>& claimed = {})
      : graph(parse_graph_text(text)) {
    kinds = annotate(graph, pattern_source(Strategy::kFull));
    FuseOptions options{.max_fused_ops = max_fused_ops};
    if (!claimed.empty()) {
      PatternClaim& claim = options.claims.emplace_back(PatternClaim{.pattern = "a.pattern"});
      for (const char* node : claimed) claim.nodes.push_back(graph.find_node(node));
    }
    plan = fuse(graph, kinds, std::move(options));
    TrialMemory memory;
    split_costly(graph, kinds, plan, memory);
    merge_forward(graph, kinds, plan, memory);
    merge_siblings(graph, kinds, plan, memory);
    recompute(graph, kinds, plan, memory);
    move_borders(graph, kinds, plan, memory);
    name_groups(graph, plan);
    verify_plan(graph, kinds, plan);
  }

  std::size_t groups() const { return plan.groups.size(); }
  GroupId group_of(const char* node) const { return plan.group_of[graph.find_node(node)]; }
  FusionDecision decision(const char* node) const { return plan.decisions[graph.find_node(node)]; }
};

}  // namespace

TEST_CASE("merging: a softmax written out is one group, with what stands around it") {
  const Merged m(R"(model "m"
input x: float32[7, 130]
input r: float32[7, 130]
s: float32[7, 130] = add(x, r)
amax: float32[7, 1] = amax(s, dim=[-1], keepdim=true)
sub: float32[7, 130] = sub(s, amax)
exp: float32[7, 130] = exp(sub)
sum: float32[7, 1] = sum(exp, dim=[-1], keepdim=true)
div: float32[7, 130] = div(exp, sum)
y: float16[7, 130] = cast(div, dtype="float16")
return y, s, sum
)");
  CHECK(m.groups() == 1);
  CHECK(m.decision("sum").rule == FusionRule::kJoined);
}

// The sum of all rows' sums alone is one kernel of two launches, which saves none.
TEST_CASE("merging: sums of rows join the rows, not the sum of them all") {
  const Merged m(R"(model "m"
input x: float32[64, 16384]
p: float32[64, 16384] = softmax(x, dim=-1)
m: float32[64, 16384] = mul(p, x)
rows: float32[64] = sum(m, dim=[1])
s: float32[] = sum(rows)
y: float32[] = div(s, 64.0)
return y
)");
  CHECK(m.groups() == 2);
  CHECK(m.group_of("rows") == m.group_of("m"));
  CHECK(m.group_of("s") == m.group_of("y"));
}

TEST_CASE("merging: attention and products behind one another are apart, and not lowered together") {
  const Merged m(R"(model "m"
input x: float16[1, 64, 256]
input w: float16[256, 256]
input o: float16[256, 256]
input k: float16[1, 4, 64, 64]
input v: float16[1, 4, 64, 64]
l: float16[1, 64, 256] = linear(x, w)
h: float16[1, 64, 4, 64] = reshape(l, shape=[1, 64, 4, 64])
q: float16[1, 4, 64, 64] = transpose(h, dim0=1, dim1=2)
a: float16[1, 4, 64, 64] = scaled_dot_product_attention(q, k, v)
t: float16[1, 64, 4, 64] = transpose(a, dim0=1, dim1=2)
b: float16[1, 64, 256] = reshape(t, shape=[1, 64, 256])
y: float16[1, 64, 256] = linear(b, o)
return y
)");
  CHECK(m.groups() == 3);
  CHECK(m.decision("l").rule == FusionRule::kNotOneKernel);
}

TEST_CASE("merging: siblings are one launch where what one of them makes is stored into a concat") {
  // Multi-head latent attention: keys are half made of the latent, half given.
  const Merged m(R"(model "m"
input q: bfloat16[1, 4, 20, 96]
input c: bfloat16[1, 20, 64]
input r: bfloat16[1, 1, 20, 32]
input v: bfloat16[256, 64]
input w: bfloat16[256, 64]
a: bfloat16[1, 20, 256] = linear(c, v)
b: bfloat16[1, 20, 4, 64] = reshape(a, shape=[1, 20, 4, 64])
d: bfloat16[1, 4, 20, 64] = transpose(b, dim0=1, dim1=2)
e: bfloat16[1, 20, 256] = linear(c, w)
f: bfloat16[1, 20, 4, 64] = reshape(e, shape=[1, 20, 4, 64])
g: bfloat16[1, 4, 20, 64] = transpose(f, dim0=1, dim1=2)
h: bfloat16[1, 4, 20, 32] = expand(r, shape=[1, 4, 20, 32])
k: bfloat16[1, 4, 20, 96] = concat(d, h, dim=-1)
y: bfloat16[1, 4, 20, 64] = scaled_dot_product_attention(q, k, g, is_causal=true)
return y
)");
  CHECK(m.groups() == 2);
}

TEST_CASE("merging: what no reader of several could take in, all of them together can") {
  const Merged m(R"(model "m"
input x: float32[2, 6, 32]
constant w: float32[96, 32]
p: float32[2, 6, 96] = linear(x, w)
s: float32[2, 6, 3, 4, 8] = reshape(p, shape=[2, 6, 3, 4, 8])
t: float32[3, 2, 4, 6, 8] = permute(s, dims=[2, 0, 3, 1, 4])
a: float32[2, 4, 6, 8] = select(t, dim=0, index=0)
b: float32[2, 4, 6, 8] = select(t, dim=0, index=1)
c: float32[2, 4, 6, 8] = select(t, dim=0, index=2)
q: float32[2, 4, 6, 8] = mul(a, 0.5)
k: float32[2, 4, 6, 8] = mul(b, 0.5)
v: float32[2, 4, 6, 8] = relu(c)
return q, k, v
)");
  CHECK(m.groups() == 1);
}

TEST_CASE("merging: products of one row stand side by side before what reads one of them takes it in") {
  const Merged m(R"(model "m"
input x: float32[1, 64]
constant wq: float32[32, 64]
constant wk: float32[32, 64]
constant wv: float32[32, 64]
q: float32[1, 32] = linear(x, wq)
k: float32[1, 32] = linear(x, wk)
v: float32[1, 32] = linear(x, wv)
y: float32[1, 32] = scaled_dot_product_attention(q, k, v)
return y
)");
  CHECK(m.groups() == 2);
}

TEST_CASE("merging: a value that a product reads again and again is stored") {
  const Merged m(R"(model "m"
input x: float32[64, 64]
input w: float32[64, 64]
s: float32[64, 64] = softmax(x, dim=-1)
y: float32[64, 64] = matmul(s, w)
return y
)");
  CHECK(m.groups() == 2);
  CHECK(m.decision("s").rule == FusionRule::kNotOneKernel);
  CHECK(m.decision("s").phase == 3);
}

TEST_CASE("merging: a third group between keeps two apart") {
  const Merged m(R"(model "m"
input x: float32[8, 8]
a: float32[8, 8] = relu(x)
b: float32[8, 8] = cumsum(a, dim=0)
c: float32[8, 8] = add(a, b)
return c
)");
  CHECK(m.groups() == 3);
  CHECK(m.decision("a").rule == FusionRule::kClosesCycle);
}

TEST_CASE("merging: a norm of short rows is the epilogue of the product that it reads") {
  const Merged m(R"(model "m"
input x: float16[3136, 96]
input r: float16[3136, 96]
constant w: float16[96, 96]
constant g: float16[96]
p: float16[3136, 96] = linear(x, w)
s: float16[3136, 96] = add(p, r)
y: float16[3136, 96] = rms_norm(s, g, normalized_shape=[96])
return s, y
)");
  CHECK(m.groups() == 1);
}

TEST_CASE("merging: a mask that two sums read is read by both where one launch is plainly faster") {
  const Merged m(R"(model "m"
input x: float16[32, 128, 384]
input m: int64[32, 128]
c: float16[32, 128] = cast(m, dtype="float16")
u: float16[32, 128, 1] = unsqueeze(c, dim=-1)
p: float16[32, 128, 384] = mul(x, u)
s: float16[32, 384] = sum(p, dim=[1])
n: float16[32] = sum(c, dim=[1])
t: float16[32, 1] = unsqueeze(n, dim=-1)
y: float16[32, 384] = div(s, t)
return y
)");
  CHECK(m.groups() == 2);
}

TEST_CASE("merging: no group grows beyond the limits") {
  const Merged m(R"(model "m"
input x: float32[7, 130]
amax: float32[7, 1] = amax(x, dim=[-1], keepdim=true)
sub: float32[7, 130] = sub(x, amax)
exp: float32[7, 130] = exp(sub)
sum: float32[7, 1] = sum(exp, dim=[-1], keepdim=true)
div: float32[7, 130] = div(exp, sum)
return div
)",
                 2);
  for (const FusionGroup& group : m.plan.groups) CHECK(group.nodes.size() <= 2);
}

TEST_CASE("merging: small groups that have nothing to do with one another run side by side") {
  const Merged m(R"(model "m"
input p: float32[7, 33]
input q: float32[5]
input r: float32[4, 64]
a: float32[7, 33] = relu(p)
b: float32[5] = tanh(q)
c: float32[4] = sum(r, dim=[1])
return a, b, c
)");
  CHECK(m.groups() == 1);
}

// The limit is one of kernels that grow; parts side by side are kernels of their own.
TEST_CASE("merging: parts that nothing connects count their nodes each for itself") {
  std::string text = "model \"m\"\n", nodes, results;
  for (int i = 0; i < 40; ++i) {
    const std::string n = std::to_string(i);
    text += "input x" + n + ": float32[8, " + std::to_string(9 + i) + "]\n";
    for (const auto& [name, op, of] : {std::tuple{"a", "tanh", "x"}, {"b", "sigmoid", "a"}, {"c", "relu", "b"}})
      nodes += name + n + ": float32[8, " + std::to_string(9 + i) + "] = " + op + "(" + of + n + ")\n";
    results += (i == 0 ? "" : ", ") + std::string("c") + n;
  }
  const Merged m(text + nodes + "return " + results + "\n", 4);
  CHECK(m.groups() == 1);
  CHECK(largest_component(m.graph, m.plan.groups[0].nodes) == 3);
}

// Every block of the second kernel would compute the variance of everything.
TEST_CASE("merging: a group of the three phases that does not pay is taken apart") {
  Graph graph = parse_graph_text(R"(model "m"
input x: float32[1024]
input y: float32[512, 1024]
v: float32[] = var(x, dim=[0], correction=0)
d: float32[512, 1024] = sub(v, y)
return d
)");
  const std::vector<OpPattern> kinds = annotate(graph, pattern_source(Strategy::kFull));
  FusionPlan plan = fuse(graph, kinds, {});
  TrialMemory memory;
  const bool joined = plan.groups.size() == 1;
  split_costly(graph, kinds, plan, memory);
  merge_forward(graph, kinds, plan, memory);
  name_groups(graph, plan);
  verify_plan(graph, kinds, plan);
  if (joined && plan.groups.size() == 2) CHECK(plan.decisions[0].rule == FusionRule::kPredictedSlower);
  double seconds = 0, apart = 0;
  for (const FusionGroup& group : plan.groups)
    seconds += predict(graph, group.nodes, {graph.nodes[group.nodes.back()].first_output}, true, memory.target()).total;
  for (NodeId n = 0; n < 2; ++n)
    apart += predict(graph, {n}, {graph.nodes[n].first_output}, true, memory.target()).total;
  CHECK(seconds <= apart * 1.0001);
}

// A norm of what lies across memory is one kernel where shared memory has room for some whole rows; longer rows would
// be asked for a sector an element, which takes longer than to transpose first.
TEST_CASE("merging: what is normalized across memory is transposed first where rows are too long to be turned") {
  const auto normalized = [](int length) {
    const std::string text = fmt::format(R"(model "m"
input x: float32[{0}, 4096]
t: float32[4096, {0}] = transpose(x, dim0=0, dim1=1)
y: float32[4096, {0}] = layer_norm(t, normalized_shape=[{0}])
return y
)",
                                         length);
    return Merged(text);
  };
  const Merged together = normalized(1024), apart = normalized(16384);
  CHECK(together.groups() == 1);
  CHECK(apart.groups() == 2);
  CHECK(apart.decision("t").rule == FusionRule::kPredictedSlower);
}

// Squeeze and excitation: the product with the gate stands in the gate's group, of which every kernel would compute the
// gate again. The product that reads it takes it in for nothing.
TEST_CASE("merging: a group that is two kernels is taken apart, and what reads the second takes it in") {
  const std::string text = R"(model "m"
input x: float32[8, 160, 28, 28]
input s: float32[8, 160, 1, 1]
constant u: float32[160, 160, 1, 1]
constant w: float32[80, 160, 1, 1]
c: float32[8, 160, 1, 1] = conv2d(s, u)
h: float32[8, 160, 1, 1] = hardsigmoid(c)
m: float32[8, 160, 28, 28] = mul(x, h)
y: float32[8, 80, 28, 28] = conv2d(m, w)
return y
)";
  const Merged m(text);
  CHECK(m.groups() == 2);
  CHECK(m.group_of("m") == m.group_of("y"));
  CHECK(m.group_of("c") != m.group_of("y"));
  const Merged claimed(text, 256, {"c", "h"});
  CHECK(claimed.groups() == 2);
  CHECK(claimed.group_of("c") == claimed.group_of("h"));
  CHECK(claimed.group_of("m") == claimed.group_of("y"));
  CHECK(claimed.plan.groups[claimed.group_of("h")].claimed_by == 0);
  CHECK(claimed.plan.groups[claimed.group_of("y")].claimed_by == kNone);
}

// Backward attention: the softmax and the sums of rows that the gradient takes away, which waits for nobody.
TEST_CASE("merging: groups that run one after the other run side by side, whatever they read, if one leaves little") {
  const std::string rows = R"(model "m"
input x: bfloat16[4, 16, 1024, 1024]
input y: bfloat16[4, 16, 1024, 64]
input z: bfloat16[4, 16, 1024, 64]
input v: bfloat16[4, 16, 1024, 64]
t: bfloat16[4, 16, 1024, 64] = cumsum(v, dim=2)
s: bfloat16[4, 16, 1024, 1024] = softmax(x, dim=-1)
o: bfloat16[4, 16, 1024, 64] = mul(t, z)
d: bfloat16[4, 16, 1024, 1] = sum(o, dim=[-1], keepdim=true)
)";
  const Merged little(rows + R"(p: bfloat16[4, 16, 1024, 64] = matmul(s, y)
r: bfloat16[4, 16, 1024, 1] = cumsum(d, dim=2)
return p, r
)");
  CHECK(little.group_of("s") == little.group_of("d"));
  CHECK(little.group_of("s") != little.group_of("p"));
}

TEST_CASE("merging: what is predicted to take longer is refused, and by how much") {
  const Merged m(R"(model "m"
input x: float32[16, 65536]
input w: float32[65536]
a: float32[16, 65536] = tanh(x)
s: float32[65536] = sum(a, dim=[0])
y: float32[65536] = mul(s, w)
t: float32[16] = sum(a, dim=[1])
return y, t
)");
  for (const RefusedMerge& refused : m.plan.refused) {
    const FusionDecision& decision = refused.decision;
    CHECK(decision.rule != FusionRule::kJoined);
    if (decision.rule == FusionRule::kPredictedSlower) CHECK(decision.joined_us > decision.apart_us);
  }
  for (const FusionDecision& decision : m.plan.decisions)
    if (decision.rule == FusionRule::kJoined && decision.apart_us > 0)
      CHECK(decision.joined_us <= decision.apart_us * 1.001f);
}

TEST_CASE("merging: what is cheap is computed in each of its readers") {
  const Merged m(R"(model "m"
input x: float16[64, 64]
input w: float16[64, 64]
input v: float16[64, 64]
h: float16[64, 64] = mul(x, 0.5)
a: float16[64, 64] = matmul(h, w)
c: float16[64, 64] = matmul(a, v)
y: float16[64, 64] = matmul(h, c)
return y
)");
  CHECK(m.groups() == 3);
  REQUIRE(m.plan.recomputed.size() == 1);
  CHECK(m.plan.recomputed[0].node == m.graph.find_node("h"));
}

TEST_CASE("merging: what is kept apart stays apart") {
  Graph graph = parse_graph_text(R"(model "m"
input x: float32[8, 8]
a: float32[8, 1] = sum(x, dim=[-1], keepdim=true)
b: float32[8, 8] = sub(x, a)
return b
)");
  disable_fusion(graph, {}, std::vector<std::string>{"a"});
  const std::vector<OpPattern> kinds = annotate(graph, pattern_source(Strategy::kFull));
  FusionPlan plan = fuse(graph, kinds, {});
  TrialMemory memory;
  merge_forward(graph, kinds, plan, memory);
  merge_siblings(graph, kinds, plan, memory);
  CHECK(plan.groups.size() == 2);
}

// Contractions of random pairs: accepted ones leave an order that can be run, and pairs that stand next to each other
// without a third between them are accepted.
TEST_CASE("group graph: contractions never close a circle") {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    AnnotatedGraph g;
    std::vector<ValueId> values{g.graph.add_input("x", TensorType{DType::kFloat32, {4}})};
    for (int n = 0; n < 40; ++n) {
      const std::size_t near = std::min<std::size_t>(values.size(), 6);
      const ValueId a = values[values.size() - 1 - random() % near], b = values[random() % values.size()];
      values.push_back(add_custom(g, OpPattern::kElemwise, {a, b}));
    }
    g.graph.outputs = {values.back()};
    FusionPlan plan = fuse(g.graph, g.kinds, {.strategy = Strategy::kUnfused});
    GroupGraph groups(g.graph, plan);
    for (int i = 0; i < 60; ++i) {
      const std::vector<GroupId> order = groups.order();
      const GroupId a = order[random() % order.size()], b = order[random() % order.size()];
      if (a != b) groups.contract(std::array{a, b});
      const std::vector<GroupId> now = groups.order();
      for (const GroupId group : now)
        for (const GroupId producer : groups.producers(group)) CHECK(groups.is_before(producer, group));
    }
    groups.write_to(plan, g.kinds);
    name_groups(g.graph, plan);
    FusionPlan sorted = plan;
    CHECK(order_groups(g.graph, sorted));
  }
}

}  // namespace fusec::test
