// What a product permutes ahead of it goes to the group that makes it, where warpgroups can copy it then: which views
// go, which stay, and what the plan says of it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "analysis/annotate.h"
#include "ir/text.h"
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

  explicit Moved(const std::string& text, const char* arch = "sm_90a") : graph(parse_graph_text(text)) {
    kinds = annotate(graph, pattern_source(Strategy::kFull));
    plan = fuse(graph, kinds, {});
    TrialMemory memory(target_for(arch));
    merge_forward(graph, kinds, plan, memory);
    move_views(graph, kinds, plan, memory);
    name_groups(graph, plan);
    verify_plan(graph, kinds, plan);
  }

  NodeId node(const char* name) const { return graph.find_node(name); }
  GroupId group(const char* name) const { return plan.group_of[node(name)]; }
};

// The heads of a vision transformer's attention: 197 tokens, so that tiles of rows are of several images.
std::string heads(const char* returned = "y", int head = 64) {
  return fmt::format(R"(model "m"
input q: float16[64, 12, 197, {0}]
input k: float16[64, 12, 197, {0}]
input v: float16[64, 12, 197, {0}]
constant w: float16[768, {1}]
a: float16[64, 12, 197, {0}] = scaled_dot_product_attention(q, k, v)
t: float16[64, 197, 12, {0}] = transpose(a, dim0=1, dim1=2)
r: float16[64, 197, {1}] = reshape(t, shape=[64, 197, {1}])
y: float16[64, 197, 768] = linear(r, w)
return {2}
)",
                     head, 12 * head, returned);
}

}  // namespace

TEST_CASE("views: heads are put together by attention, and the product behind it is one of warpgroups") {
  const Moved m(heads());
  REQUIRE(m.plan.groups.size() == 2);
  CHECK(m.group("t") == m.group("a"));
  CHECK(m.group("r") == m.group("a"));
  CHECK(m.group("y") != m.group("a"));
  const FusionDecision &maker = m.plan.decisions[m.node("a")], &last = m.plan.decisions[m.node("r")];
  CHECK(maker.rule == FusionRule::kJoined);
  CHECK(maker.meeting == m.node("r"));
  CHECK(maker.joined_us < maker.apart_us);
  CHECK(last.rule == FusionRule::kPredictedSlower);
  CHECK(last.meeting == m.node("y"));
}

TEST_CASE("views: plans are the same when they are made again, and when they are read") {
  const Moved a(heads()), b(heads());
  const std::string text = write_plan(a.graph, a.plan);
  CHECK(text == write_plan(b.graph, b.plan));
  CHECK(text == write_plan(a.graph, read_plan(text, "plan", a.graph, a.kinds, {})));
}

TEST_CASE("views: what pays nothing stays, and so do rows of less than 16 bytes and what others read") {
  CHECK(Moved(heads(), "sm_80").group("r") == Moved(heads(), "sm_80").group("y"));
  CHECK(Moved(heads("y", 20)).group("t") != Moved(heads("y", 20)).group("a"));
  CHECK(Moved(heads("y, a")).group("t") != Moved(heads("y, a")).group("a"));
}

}  // namespace fusec::test
