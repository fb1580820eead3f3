// The partition report of a small model, whole.
#include "transforms/partition_report.h"

#include "doctest/doctest.h"
#include "support/random_graph.h"
#include "transforms/fuse.h"

namespace fusec::test {

TEST_CASE("partition report: swiglu") {
  AnnotatedGraph g;
  g.graph.name = "swiglu \"mlp\"";
  const ValueId x = g.graph.add_input("x", TensorType{DType::kFloat32, {4}});
  const ValueId gate = add_custom(g, OpPattern::kOutEwiseFusable, {x, x});
  const ValueId up = add_custom(g, OpPattern::kOpaque, {x});
  const ValueId act = add_custom(g, OpPattern::kElemwise, {gate, g.graph.add_number(Scalar::floating(2))});
  g.graph.outputs = {add_custom(g, OpPattern::kElemwise, {act, up})};
  const FusionPlan plan = fuse(g.graph, g.kinds, {.strategy = Strategy::kTvm});
  CHECK(partition_report(g.graph, plan, {.arch = "sm_80"}) ==
        R"({"fusec_partition": 1, "model": "swiglu \"mlp\"", "strategy": "tvm", "arch": "sm_80",
 "groups": [
  {"name": "custom_opaque", "nodes": ["n1"], "duplicated": [], "pattern": "opaque", "anchor": null, "claimed_by": null, "codegen": "fusec", "launches": 1, "inputs": ["x"], "outputs": ["n1"], "flops": 0, "bytes": 32},
  {"name": "fused_custom_out_ewise_fusable_custom_elemwise_custom_elemwise", "nodes": ["n0", "n2", "n3"], "duplicated": [], "pattern": "out_ewise_fusable", "anchor": "n0", "claimed_by": null, "codegen": "fusec", "launches": 1, "inputs": ["x", "n1"], "outputs": ["n3"], "flops": 0, "bytes": 48}
 ],
 "dropped": [], "folded": [], "prepared": [], "kernels": 2, "launches": 2,
 "global_bytes": {"read": 48, "written": 32, "unfused_read": 80, "unfused_written": 64}}
)");
}

TEST_CASE("partition report: without fusion the bytes are those of the nodes, dead values not counted") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const AnnotatedGraph g = random_graph(random);
    const FusionPlan plan = fuse(g.graph, g.kinds, {.strategy = Strategy::kUnfused});
    const GlobalBytes apart = global_bytes(g.graph, plan, group_interfaces(g.graph, plan));
    const GlobalBytes unfused = unfused_global_bytes(g.graph);
    REQUIRE(apart.read == unfused.read);
    REQUIRE(apart.written == unfused.written);
    const FusionPlan fused = fuse(g.graph, g.kinds, {.strategy = Strategy::kTvm});
    const GlobalBytes together = global_bytes(g.graph, fused, group_interfaces(g.graph, fused));
    REQUIRE(together.read <= apart.read);
    REQUIRE(together.written <= apart.written);
  }
}

}  // namespace fusec::test
