// What --explain and the ledger say of groups that the phases after the three kept apart: who is to blame, and what
// would allow it.
#include "transforms/explain_merge.h"

#include <doctest/doctest.h>

#include "analysis/annotate.h"
#include "ir/text.h"
#include "transforms/explain.h"
#include "transforms/fuse.h"
#include "transforms/merge_groups.h"

namespace fusec::test {
namespace {

struct Told {
  std::string rule, blocker, would_allow;
};

// Of the edge between two nodes, after the merging phases.
Told told(const std::string& text, const char* from, const char* to, std::uint32_t max_fused_ops = 256) {
  const Graph graph = parse_graph_text(text);
  const std::vector<OpPattern> kinds = annotate(graph, pattern_source(Strategy::kFull));
  FusionPlan plan = fuse(graph, kinds, {.max_fused_ops = max_fused_ops});
  TrialMemory memory;
  merge_forward(graph, kinds, plan, memory);
  merge_siblings(graph, kinds, plan, memory);
  for (const LedgerEntry& entry : ledger(graph, kinds, plan))
    if (entry.from == graph.find_node(from) && entry.to == graph.find_node(to)) {
      REQUIRE(entry.blocker != kNone);
      return {std::string(name(entry.rule)), graph.nodes[entry.blocker].name, entry.would_allow};
    }
  return {};
}

}  // namespace

TEST_CASE("explain merges: the product that needs the rows stored") {
  const Told t = told(R"(model "m"
input x: float32[512, 1024]
input w: float32[1024, 1024]
s: float32[512, 1024] = softmax(x, dim=-1)
r: float32[512, 1024] = relu(s)
y: float32[512, 1024] = linear(r, w)
return y
)",
                      "r", "y");
  CHECK(t.rule == "not_one_kernel");
  CHECK(t.blocker == "y");
  CHECK(t.would_allow == "nothing that you can set: \"y\" would have to be elemwise (it is out_ewise_fusable)");
}

TEST_CASE("explain merges: the reduction behind which columns begin anew") {
  const Told t = told(R"(model "m"
input x: float32[30, 400]
s: float32[30, 400] = softmax(x, dim=-1)
m: float32[1, 400] = amax(s, dim=[0], keepdim=true)
return m
)",
                      "s", "m");
  CHECK(t.rule == "not_one_kernel");
  CHECK(t.blocker == "m");
  CHECK(t.would_allow == "nothing that you can set: \"m\" would have to be elemwise (it is comm_reduce)");
}

TEST_CASE("explain merges: outputs that one kernel would have to store as well") {
  const Told t = told(R"(model "m"
input k: float16[2, 4, 30, 64]
input k1: float16[2, 4, 1, 64]
input v: float16[2, 4, 31, 64]
input q: float16[2, 4, 1, 64]
keys: float16[2, 4, 31, 64] = concat(k, k1, dim=2)
y: float16[2, 4, 1, 64] = scaled_dot_product_attention(q, keys, v)
return y, keys
)",
                      "keys", "y");
  CHECK(t.rule == "not_one_kernel");
  CHECK(t.blocker == "keys");
  CHECK(t.would_allow == "do not return \"keys\"");
}

TEST_CASE("explain merges: all the sums behind which a scale is known") {
  const Told t = told(R"(model "m"
input a: float32[70, 30]
input b: float32[90, 20]
sa: float32[] = sum(a)
sb: float32[] = sum(b)
s: float32[] = add(sa, sb)
ya: float32[70, 30] = mul(a, s)
yb: float32[90, 20] = mul(b, s)
return ya, yb
)",
                      "s", "ya");
  CHECK(t.rule == "not_one_kernel");
  CHECK(t.would_allow == "nothing that you can set: \"sa\", \"sb\" would have to be elemwise (they are comm_reduce)");
}

TEST_CASE("explain merges: a third group between two") {
  const Told t = told(R"(model "m"
input x: float32[64, 64]
a: float32[64, 64] = softmax(x, dim=-1)
b: float32[64, 64] = cumsum(a, dim=0)
y: float32[64, 64] = add(a, b)
return y, a
)",
                      "a", "y");
  CHECK(t.rule == "closes_cycle");
  CHECK(t.blocker == "b");
  CHECK(t.would_allow == "nothing that you can set: \"b\" needs \"a\"");
}

// Both products as one kernel were predicted to be slower; as one group they would need what stands between them.
TEST_CASE("explain merges: no group for both is offered where a third stands between") {
  const Told t = told(R"(model "m"
input x: float16[1, 32]
input r: float16[1, 32]
constant w: float16[32, 32]
constant u: float16[64, 32]
constant d: float16[32, 64]
p: float16[1, 32] = linear(x, w)
a: float16[1, 32] = add(p, r)
n: float16[1, 32] = layer_norm(a, normalized_shape=[32])
h: float16[1, 64] = linear(n, u)
g: float16[1, 64] = gelu(h)
q: float16[1, 32] = linear(g, d)
y: float16[1, 32] = add(q, a)
return y
)",
                      "a", "y");
  CHECK(t.rule == "closes_cycle");
  CHECK(t.would_allow.starts_with("nothing that you can set: \""));
}

TEST_CASE("explain merges: a limit") {
  const Told t = told(R"(model "m"
input x: float32[64, 64]
a: float32[64, 64] = softmax(x, dim=-1)
b: float32[64, 64] = relu(a)
c: float32[64, 64] = softmax(b, dim=-1)
return c
)",
                      "b", "c", 2);
  CHECK(t.rule == "too_many_nodes");
  CHECK(t.blocker == "c");
  CHECK(t.would_allow == "a larger --max-fused-ops");
}

}  // namespace fusec::test
