#include "transforms/fuse.h"

#include <algorithm>

#include "analysis/fusion_graph.h"
#include "ir/error.h"
#include "ir/spelling.h"
#include "transforms/argument_count.h"
#include "transforms/partition.h"

namespace fusec {
namespace {

void leave_alone(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan) {
  plan.groups.resize(graph.nodes.size());
  plan.group_of.resize(graph.nodes.size());
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    plan.group_of[n] = n;
    plan.groups[n].nodes = {n};
    classify_group(kinds, plan.groups[n]);
  }
}

// Collects groups in the order of their last nodes. That is an execution order: a group holds every path from its nodes
// to its last vertex, so only the last vertex is read outside.
void collect_groups(const FusionGraph& fusion, const Partition& result, std::span<const OpPattern> kinds,
                    FusionPlan& plan) {
  const NodeId count = static_cast<NodeId>(kinds.size());
  LargeVector<GroupId> from_last(fusion.forward.size(), kNone);  // by root: its group, counted from the last one
  std::vector<std::uint32_t> sizes;
  for (NodeId n = count; n-- > 0;) {
    GroupId& g = from_last[result.root[fusion.vertex_of[n]]];
    if (g == kNone) {
      g = static_cast<GroupId>(sizes.size());
      sizes.push_back(0);
    }
    ++sizes[g];
  }
  plan.groups.resize(sizes.size());
  plan.group_of.resize(count);
  for (NodeId n = 0; n < count; ++n) {
    const Vertex root = result.root[fusion.vertex_of[n]];
    plan.group_of[n] = static_cast<GroupId>(sizes.size() - 1 - from_last[root]);
    FusionGroup& group = plan.groups[plan.group_of[n]];
    if (group.nodes.empty()) group.nodes.reserve(sizes[from_last[root]]);
    group.nodes.push_back(n);
  }
  for (FusionGroup& group : plan.groups) classify_group(kinds, group);
}

// The partition never mixes prepared nodes with others, so a group's last node tells.
void note_prepared(const Graph& graph, FusionPlan& plan) {
  for (FusionGroup& group : plan.groups) group.prepared = graph.nodes[group.nodes.back()].prepared;
}

// The decision of each node. If a node with several results joined one of its items, the item's decision is taken.
LargeVector<FusionDecision> decisions_of_nodes(const FusionGraph& fusion, const PostDominators& post,
                                               const Partition& result) {
  const auto node_of = [&](Vertex v) { return v == kNoVertex ? kNone : fusion.node_of[v]; };
  LargeVector<FusionDecision> decisions(fusion.vertex_of.size());
  for (NodeId n = 0; n < decisions.size(); ++n) {
    Vertex v = fusion.vertex_of[n];
    if (result.decisions[v].rule == FusionRule::kJoined && node_of(post.parent(v)) == n) v = post.parent(v);
    const VertexDecision& decision = result.decisions[v];
    decisions[n] = {.meeting = node_of(post.parent(v)),
                    .blocker = node_of(decision.blocker),
                    .rule = decision.rule,
                    .phase = decision.phase};
  }
  return decisions;
}

// Notes each claim on its group. Inner nodes of a claim get the rule kClaimed, because the partition did not see them.
void note_claims(FusionPlan& plan, std::vector<PatternClaim> given) {
  plan.claims = std::move(given);
  const std::vector<PatternClaim>& claims = plan.claims;
  for (std::uint32_t c = 0; c < claims.size(); ++c) {
    const NodeId last = claims[c].nodes.back();
    FusionGroup& group = plan.groups[plan.group_of[last]];
    if (group.claimed_by == kNone) {
      group.claimed_by = c;
      group.code = claims[c].code;
    }
    for (const NodeId n : claims[c].nodes)
      if (n != last) plan.decisions[n] = {.meeting = last, .rule = FusionRule::kClaimed};
  }
}

// Accepts an op of the model or of the op table. Throws Error(kInput) for any other name.
void require_op(const Graph& graph, const std::string& op) {
  const bool in_model = std::ranges::any_of(graph.nodes, [&](const Node& node) { return node.op->name == op; });
  if (in_model || OpTable::builtin().find(op)) return;
  const std::string nearest = OpTable::builtin().nearest(op);
  throw Error(ErrorKind::kInput, {.file = graph.file,
                                  .what = "--no-fuse: no such op, in the table or in the model",
                                  .found = in_quotes(op),
                                  .hint = nearest.empty() ? "" : "did you mean " + in_quotes(nearest) + "?"});
}

}  // namespace

FusionPlan fuse(const Graph& graph, std::span<const OpPattern> kinds, FuseOptions options) {
  FusionPlan plan{.strategy = options.strategy,
                  .max_fused_ops = options.max_fused_ops,
                  .max_args = options.max_args,
                  .max_args_side_by_side = options.max_args_side_by_side};
  if (options.strategy == Strategy::kUnfused) {
    leave_alone(graph, kinds, plan);
    plan.decisions.resize(graph.nodes.size());
  } else {
    const FusionGraph fusion = build_fusion_graph(graph, kinds, pattern_source(options.strategy), options.claims);
    const PostDominators post(fusion.forward);
    PartitionOptions limits{.max_fused_ops = options.max_fused_ops, .max_args = options.max_args};
    limits.fusion_disabled = &fusion.fusion_disabled;
    limits.weight = &fusion.weight;
    ArgumentTable arguments;
    if (options.max_args != 0) {
      arguments = argument_table(graph, fusion);
      limits.arguments = &arguments;
    }
    const Partition result = partition(fusion.forward, post, limits);
    collect_groups(fusion, result, kinds, plan);
    plan.decisions = decisions_of_nodes(fusion, post, result);
    note_claims(plan, std::move(options.claims));
    note_prepared(graph, plan);
  }
  if (options.named) name_groups(graph, plan);
  return plan;
}

void disable_fusion(Graph& graph, std::span<const std::string> ops, std::span<const std::string> nodes) {
  for (const std::string& node_name : nodes)
    graph.nodes[graph.required_node(node_name, "--no-fuse-node: ")].fuse = false;
  for (Node& node : graph.nodes) {
    if (std::ranges::find(ops, node.op->name) != ops.end()) node.fuse = false;
  }
  for (const std::string& op : ops) require_op(graph, op);
}

}  // namespace fusec
