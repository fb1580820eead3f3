#include "transforms/verify_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "analysis/constant_nodes.h"
#include "analysis/group_components.h"
#include "ir/error.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

using Fault = std::optional<PlanFault>;

std::string node_name(const Graph& graph, NodeId n) {
  return in_quotes(graph.nodes[n].name);
}

bool is_recomputed(const FusionPlan& plan, GroupId group, NodeId node) {
  return std::ranges::any_of(plan.recomputed, [&](const Recomputed& r) { return r.group == group && r.node == node; });
}

Fault check_names(const FusionPlan& plan) {
  std::unordered_set<std::string_view> names;
  for (GroupId g = 0; g < plan.groups.size(); ++g) {
    const std::string& group_name = plan.groups[g].name;
    if (!is_group_name(group_name)) return PlanFault{g, in_quotes(group_name) + " is no name for a kernel"};
    if (!names.insert(group_name).second) return PlanFault{g, "two groups are called " + in_quotes(group_name)};
  }
  return std::nullopt;
}

Fault check_order(const Graph& graph, const FusionPlan& plan) {
  FusionPlan copy{.groups = plan.groups};
  if (!order_groups(graph, copy)) {
    const std::vector<GroupId> circle = find_group_cycle(graph, copy);
    std::string names;
    for (const GroupId g : circle) names += in_quotes(plan.groups[g].name) + " needs ";
    return PlanFault{circle.front(),
                     "groups need each other's results: " + names + in_quotes(plan.groups[circle.front()].name)};
  }
  for (GroupId g = 0; g < plan.groups.size(); ++g) {
    for (const NodeId n : plan.groups[g].nodes) {
      for (const ValueId v : graph.nodes[n].inputs) {
        if (v == kNone || graph.value(v).kind != Value::Kind::kResult) continue;
        if (plan.group_of[graph.value(v).producer] > g) {
          return PlanFault{g, "the group stands before " +
                                  in_quotes(plan.groups[plan.group_of[graph.value(v).producer]].name) +
                                  ", whose result it needs"};
        }
      }
    }
  }
  return std::nullopt;
}

// The number of the group's arguments that the nodes in `part` read or make.
std::size_t argument_count(const Graph& graph, const GroupInterface& group, const std::vector<NodeId>& part) {
  std::unordered_set<ValueId> read;
  for (const NodeId n : part) read.insert(graph.nodes[n].inputs.begin(), graph.nodes[n].inputs.end());
  const auto reads = [&](ValueId v) { return read.contains(v); };
  const auto makes = [&](ValueId v) { return std::ranges::binary_search(part, graph.value(v).producer); };
  return static_cast<std::size_t>(std::ranges::count_if(group.inputs, reads) +
                                  std::ranges::count_if(group.outputs, makes));
}

Fault check_limits(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan) {
  std::vector<GroupInterface> interfaces;
  if (plan.max_args != 0) interfaces = group_interfaces(graph, plan);
  for (GroupId g = 0; g < plan.groups.size(); ++g) {
    const std::span<const NodeId> nodes = plan.groups[g].nodes;
    if (nodes.size() == 1) continue;
    if (nodes.size() > plan.max_fused_ops) {
      const std::size_t most = largest_component(graph, nodes);
      if (most > plan.max_fused_ops)
        return PlanFault{g, fmt::format("the group has {} nodes, the limit is {}", most, plan.max_fused_ops)};
    }
    if (plan.max_args != 0 && interfaces[g].inputs.size() + interfaces[g].outputs.size() > plan.max_args) {
      std::size_t most = 0;
      for (const std::vector<NodeId>& part : connected_components(graph, nodes))
        most = std::max(most, argument_count(graph, interfaces[g], part));
      if (most > plan.max_args)
        return PlanFault{g, fmt::format("the group's kernel has {} arguments, the limit is {}", most, plan.max_args)};
    }
    for (const NodeId n : nodes) {
      if (!graph.nodes[n].fuse) return PlanFault{g, "node " + node_name(graph, n) + " is to be kept apart"};
      if (kinds[n] == OpPattern::kOpaque)
        return PlanFault{g, "node " + node_name(graph, n) + " is opaque: it fuses with nothing"};
    }
  }
  return std::nullopt;
}

// A prepared group may depend only on constants and other prepared groups.
Fault check_prepared(const Graph& graph, const FusionPlan& plan) {
  if (std::ranges::none_of(plan.groups, &FusionGroup::prepared)) return std::nullopt;
  const std::vector<std::uint8_t> constant = find_constant_nodes(graph);
  for (GroupId g = 0; g < plan.groups.size(); ++g) {
    if (!plan.groups[g].prepared) continue;
    if (plan.strategy != Strategy::kFull) return PlanFault{g, "only --strategy=full prepares anything"};
    for (const NodeId n : plan.groups[g].nodes) {
      if (!constant[n])
        return PlanFault{g, "node " + node_name(graph, n) + " does not depend on constants alone, or is an output"};
      if (is_recomputed(plan, g, n)) return PlanFault{g, "a node is prepared and computed again"};
      for (const ValueId v : graph.nodes[n].inputs) {
        const NodeId producer = v == kNone ? kNone : graph.value(v).producer;
        if (producer != kNone && !plan.groups[plan.group_of[producer]].prepared)
          return PlanFault{g, "it needs node " + node_name(graph, producer) + ", which is not prepared"};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

// Also checks that the nodes of each group are in topological order.
std::optional<PlanFault> find_cover_fault(const Graph& graph, const FusionPlan& plan) {
  std::vector<GroupId> first(graph.nodes.size(), kNone);
  for (GroupId g = 0; g < plan.groups.size(); ++g) {
    const std::span<const NodeId> nodes = plan.groups[g].nodes;
    if (nodes.empty()) return PlanFault{g, "the group has no nodes"};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i] >= graph.nodes.size()) return PlanFault{g, "the group has a node that the graph lacks"};
      if (i > 0 && nodes[i] == nodes[i - 1])
        return PlanFault{g, "node " + node_name(graph, nodes[i]) + " stands twice in the group"};
      if (i > 0 && nodes[i] < nodes[i - 1]) return PlanFault{g, "the nodes of the group are not in topological order"};
      GroupId& holder = first[nodes[i]];
      if (holder != kNone && !is_recomputed(plan, g, nodes[i])) {
        return PlanFault{g, fmt::format("node {} is in group {} already", node_name(graph, nodes[i]),
                                        in_quotes(plan.groups[holder].name))};
      }
      if (holder == kNone) holder = g;
    }
  }
  const auto missing = std::ranges::find(first, kNone);
  if (missing == first.end()) return std::nullopt;
  return PlanFault{kNone, "node " + node_name(graph, static_cast<NodeId>(missing - first.begin())) + " is in no group"};
}

std::optional<PlanFault> find_plan_fault(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan) {
  if (Fault fault = find_cover_fault(graph, plan)) return fault;
  if (Fault fault = check_names(plan)) return fault;
  if (Fault fault = check_order(graph, plan)) return fault;
  if (Fault fault = check_prepared(graph, plan)) return fault;
  return check_limits(graph, kinds, plan);
}

void verify_plan(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan) {
  if (const Fault fault = find_plan_fault(graph, kinds, plan)) {
    const std::string where = fault->group == kNone ? "" : " (group " + in_quotes(plan.groups[fault->group].name) + ")";
    throw InternalError("the fusion plan is wrong: " + fault->what + where);
  }
}

}  // namespace fusec
