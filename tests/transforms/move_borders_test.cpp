// What widens a group's result goes to those that read it: which nodes, to whom, and what stays; that plans so made are
// valid, say who computes what, and are the same when they are read again.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "analysis/annotate.h"
#include "analysis/group_graph.h"
#include "ir/text.h"
#include "support/random_graph.h"
#include "transforms/fuse.h"
#include "transforms/merge_groups.h"
#include "transforms/plan_file.h"
#include "transforms/verify_plan.h"

namespace fusec::test {
namespace {

struct Moved {
  Graph graph;
  std::vector<OpPattern> kinds;
  FusionPlan plan;
  std::size_t groups_before = 0;

  explicit Moved(Graph given, std::vector<PatternClaim> claims = {}) : graph(std::move(given)) {
    kinds = annotate(graph, pattern_source(Strategy::kFull));
    plan = fuse(graph, kinds, {.claims = std::move(claims)});
    TrialMemory memory;
    merge_forward(graph, kinds, plan, memory);
    merge_siblings(graph, kinds, plan, memory);
    recompute(graph, kinds, plan, memory);
    groups_before = plan.groups.size();
    move_borders(graph, kinds, plan, memory);
    name_groups(graph, plan);
    verify_plan(graph, kinds, plan);
  }
  explicit Moved(const std::string& text) : Moved(parse_graph_text(text)) {}

  NodeId node(const char* name) const { return graph.find_node(name); }
  GroupId group(const char* name) const { return plan.group_of[node(name)]; }
  bool is_in(const char* name, GroupId g) const { return std::ranges::binary_search(plan.groups[g].nodes, node(name)); }
};

// Rows are quantized to int8, and the codes multiplied as int32.
constexpr const char* kQuantized = R"(model "m"
input x: bfloat16[512, 2048]
constant w: int8[1024, 2048]
a: float32[512, 2048] = cast(x, dtype="float32")
b: float32[512, 2048] = abs(a)
m: float32[512, 1] = amax(b, dim=[-1], keepdim=true)
s: float32[512, 1] = div(m, 127.0)
d: float32[512, 2048] = div(a, s)
r: float32[512, 2048] = round(d)
codes: int8[512, 2048] = cast(r, dtype="int8")
wide: int32[512, 2048] = cast(codes, dtype="int32")
v: int32[1024, 2048] = cast(w, dtype="int32")
y: int32[512, 1024] = linear(wide, v)
return y
)";

// Casts between reductions along either axis, of whatever came before.
std::string random_casts(Random& random) {
  struct Made {
    std::string name, dtype;
  };
  std::string text = "model \"m\"\ninput x: bfloat16[64, 96]\n", outputs;
  std::vector<Made> made{{"x", "bfloat16"}};
  const auto add = [&](const std::string& dtype, const std::string& formula) {
    const std::string name = fmt::format("n{}", made.size());
    text += fmt::format("{}: {}[64, 96] = {}\n", name, dtype, formula);
    made.push_back({name, dtype});
  };
  for (int i = 0; i < 16; ++i) {
    const Made of =
        made[made.size() - 1 - random.below(std::min<std::uint32_t>(3, static_cast<std::uint32_t>(made.size())))];
    switch (random.below(4)) {
      case 0:
        add(of.dtype, fmt::format("softmax({}, dim={})", of.name, random.below(2)));
        break;
      case 1:
        add(of.dtype, fmt::format("add({}, {})", of.name, of.name));
        break;
      default: {
        const std::string dtype = of.dtype == "bfloat16" ? "float32" : "bfloat16";
        add(dtype, fmt::format("cast({}, dtype=\"{}\")", of.name, dtype));
      }
    }
    if (random.chance(15)) outputs += made.back().name + ", ";
  }
  return text + "return " + outputs + made.back().name + "\n";
}

}  // namespace

TEST_CASE("borders: a widening cast goes to the product that reads it, which has tensor cores then") {
  const Moved m(kQuantized);
  REQUIRE(m.plan.groups.size() == 2);
  CHECK(m.group("codes") == 0);
  CHECK(m.group("wide") == 1);
  CHECK(m.plan.recomputed.empty());
  // Both say why: the cast is where it is predicted to be faster.
  const FusionDecision &moved = m.plan.decisions[m.node("wide")], &left = m.plan.decisions[m.node("codes")];
  CHECK(moved.rule == FusionRule::kJoined);
  CHECK(moved.meeting == m.node("y"));
  CHECK(moved.joined_us < moved.apart_us);
  CHECK(left.rule == FusionRule::kPredictedSlower);
  CHECK(left.meeting == m.node("wide"));
  CHECK(left.joined_us > left.apart_us);
}

TEST_CASE("borders: plans are the same when they are made again, and when they are read") {
  const Moved a(kQuantized), b(kQuantized);
  const std::string text = write_plan(a.graph, a.plan);
  CHECK(text == write_plan(b.graph, b.plan));
  const FusionPlan read = read_plan(text, "plan", a.graph, a.kinds, {});
  CHECK(text == write_plan(a.graph, read));
}

TEST_CASE("borders: what a graph output shows, and what the user keeps apart, stays") {
  const std::string returned =
      std::string(kQuantized).replace(std::string(kQuantized).find("return y"), 8, "return y, wide");
  CHECK(Moved(returned).group("wide") == 0);
  Graph graph = parse_graph_text(kQuantized);
  disable_fusion(graph, {}, std::vector<std::string>{"wide"});
  const Moved kept(std::move(graph));
  CHECK(kept.plan.groups.size() == 3);
}

TEST_CASE("borders: a cast that the group reads itself is computed by both") {
  // The rows' greatest elements are of the cast, which a kernel of other rows reads, too.
  const Moved m(R"(model "m"
input x: bfloat16[4096, 1024]
constant w: bfloat16[1024]
n: bfloat16[4096, 1024] = rms_norm(x, w, eps=1e-05, normalized_shape=[1024])
wide: float32[4096, 1024] = cast(n, dtype="float32")
s: float32[4096, 1] = sum(wide, dim=[-1], keepdim=true)
c: float32[4096, 1024] = softmax(wide, dim=0)
return s, c
)");
  REQUIRE(m.plan.groups.size() == 2);
  CHECK(m.is_in("wide", 0));
  CHECK(m.is_in("wide", 1));
  REQUIRE(m.plan.recomputed.size() == 1);
  CHECK(m.plan.recomputed[0].node == m.node("wide"));
  const std::vector<GroupInterface> interfaces = group_interfaces(m.graph, m.plan);
  CHECK(interfaces[1].inputs == std::vector{m.graph.nodes[m.node("n")].first_output});
}

TEST_CASE("borders: several readers compute it, each for itself") {
  const Moved m(R"(model "m"
input x: bfloat16[4096, 1024]
constant w: bfloat16[1024]
n: bfloat16[4096, 1024] = rms_norm(x, w, eps=1e-05, normalized_shape=[1024])
wide: float32[4096, 1024] = cast(n, dtype="float32")
p: float32[4096, 1024] = softmax(wide, dim=0)
r: float32[4096, 1024] = softmax(p, dim=-1)
y: float32[4096, 1024] = add(r, wide)
return y
)");
  REQUIRE(m.plan.groups.size() == 3);
  CHECK_FALSE(m.is_in("wide", m.group("n")));
  CHECK(m.is_in("wide", m.group("p")));
  CHECK(m.is_in("wide", m.group("y")));
}

TEST_CASE("borders: a broadcast is stored narrow") {
  const Moved m(R"(model "m"
input x: float32[1, 64, 96]
input z: float32[512, 32, 64]
s: float32[1, 64, 96] = softmax(x, dim=-1)
e: float32[512, 64, 96] = expand(s, shape=[512, 64, 96])
y: float32[512, 32, 96] = bmm(z, e)
return y
)");
  REQUIRE(m.plan.groups.size() == 2);
  CHECK(m.group("e") == m.group("y"));
}

TEST_CASE("borders: the end of what a pattern claimed goes, too, and is the claim's no more; what it names stays") {
  const char* text = R"(model "m"
input x: bfloat16[4096, 1024]
constant w: bfloat16[4096, 1024]
p: bfloat16[4096, 4096] = linear(x, w)
wide: float32[4096, 4096] = cast(p, dtype="float32")
y: float32[4096, 4096] = softmax(wide, dim=-1)
return y
)";
  const auto claim = [&](const char* named) {
    const Graph graph = parse_graph_text(text);
    PatternClaim c{.pattern = "epilogue", .nodes = {graph.find_node("p"), graph.find_node("wide")}};
    c.parts.emplace_back("part", graph.find_node(named));
    return c;
  };
  const Moved moved(parse_graph_text(text), {claim("p")});
  CHECK(moved.group("wide") == moved.group("y"));
  CHECK(moved.plan.claims[0].nodes == std::vector{moved.node("p")});
  const Moved stays(parse_graph_text(text), {claim("wide")});
  CHECK(stays.group("wide") == stays.group("p"));
  CHECK(stays.plan.claims[0].nodes.size() == 2);
}

TEST_CASE("borders: what was refused of a group is still said of it") {
  const Moved m(kQuantized);
  for (const RefusedMerge& refused : m.plan.refused) {
    CHECK(refused.from != m.node("wide"));
    CHECK(m.plan.group_of[refused.from] != m.plan.group_of[refused.to]);
  }
}

TEST_CASE("borders: plans of random graphs are valid, in an order that can be run, and no group is lost") {
  std::size_t moved = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const Moved m(parse_graph_text(random_casts(random)));
    CHECK(m.plan.groups.size() == m.groups_before);
    moved += static_cast<std::size_t>(std::ranges::count(m.plan.decisions, 6, &FusionDecision::phase));
    const std::string text = write_plan(m.graph, m.plan);
    CHECK(text == write_plan(m.graph, read_plan(text, "plan", m.graph, m.kinds, {})));
  }
  CHECK(moved > 0);
}

}  // namespace fusec::test
