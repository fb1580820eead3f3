#include "transforms/explain_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "analysis/lower.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

// Groups that are looked at for a way around.
constexpr std::size_t kMostGroupsOnTheWay = 4096;

constexpr const char* kOneGroup = "one group for both in a plan file (--emit=plan, --plan)";

struct Lowered {
  std::size_t kernels = 0;
  NodeId without_formula = kNone;  // an op that no kernel takes in
  std::vector<ValueId> stored;     // in order of their kernels
};

Lowered lowered(const Graph& graph, const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs) {
  Lowered result;
  for (const LoweredUnit& unit : lower_group(graph, nodes, outputs)) {
    if (unit.kind == LoweredUnit::Kind::kSpecial && result.without_formula == kNone) result.without_formula = unit.node;
    if (unit.kind != LoweredUnit::Kind::kKernel) continue;
    ++result.kernels;
    for (const KernelOutput& output : unit.kernel.outputs) result.stored.push_back(output.value);
  }
  return result;
}

std::vector<NodeId> nodes_of_both(const FusionGroup& a, const FusionGroup& b) {
  std::vector<NodeId> nodes(a.nodes.begin(), a.nodes.end());
  nodes.insert(nodes.end(), b.nodes.begin(), b.nodes.end());
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

}  // namespace

MergeExplainer::MergeExplainer(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan)
    : graph_(graph), kinds_(kinds), plan_(plan), uses_(uses_of(graph)), is_output_(graph.value_count(), 0) {
  for (const ValueId v : graph.outputs) is_output_[v] = 1;
}

MergeObstacle MergeExplainer::obstacle(GroupId from, GroupId to, const FusionDecision& refused) const {
  MergeObstacle found;
  switch (refused.rule) {
    case FusionRule::kNotOneKernel:
      found = of_lowering(from, to);
      break;
    case FusionRule::kClosesCycle:
      found = of_cycle(from, to);
      break;
    case FusionRule::kTooManyNodes:
      found.would_allow = "a larger --max-fused-ops";
      break;
    case FusionRule::kTooManyArguments:
      found.would_allow = "a larger --max-args";
      break;
    case FusionRule::kWorseForm:
    case FusionRule::kMoreBytes:
    case FusionRule::kPredictedSlower:
    case FusionRule::kNotTried:
      found.would_allow = kOneGroup;  // one kernel is possible, and was not wanted
      break;
    default:
      break;
  }
  if (found.blocker == kNone) found.blocker = refused.blocker;
  if (found.blocker == kNone) found.blocker = first_reader(from, to);
  return found;
}

NodeId MergeExplainer::first_reader(GroupId from, GroupId to) const {
  for (const NodeId n : plan_.groups[to].nodes)
    for (const ValueId v : graph_.nodes[n].inputs) {
      const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
      if (producer != kNone && std::ranges::binary_search(plan_.groups[from].nodes, producer)) return n;
    }
  return kNone;
}

MergeObstacle MergeExplainer::of_kind(NodeId n) const {
  if (n == kNone || kinds_[n] == OpPattern::kElemwise) return {.blocker = n, .would_allow = ""};
  return {.blocker = n,
          .would_allow = fmt::format("if {} were {} (now {})", in_quotes(graph_.nodes[n].name),
                                     name(OpPattern::kElemwise), name(kinds_[n]))};
}

MergeObstacle MergeExplainer::of_need(NodeId reader, NodeId read) const {
  return {.blocker = reader,
          .would_allow = fmt::format("if {} did not need {}", in_quotes(graph_.nodes[reader].name),
                                     in_quotes(graph_.nodes[read].name))};
}

// The node that wants the value in memory: of those that it reaches, the first that reads elements many times or in
// another order; else the one that reads it.
NodeId MergeExplainer::reader_in_need(ValueId stored, std::span<const NodeId> nodes) const {
  std::unordered_set<NodeId> reached{graph_.value(stored).producer};
  NodeId reader = kNone, movement = kNone;
  for (const NodeId n : nodes) {
    const bool reads = std::ranges::any_of(graph_.nodes[n].inputs, [&](ValueId v) {
      return v != kNone && graph_.value(v).producer != kNone && reached.contains(graph_.value(v).producer);
    });
    if (!reads) continue;
    reached.insert(n);
    if (kinds_[n] > OpPattern::kInjective) return n;
    if (reader == kNone) reader = n;
    if (movement == kNone && kinds_[n] == OpPattern::kInjective) movement = n;
  }
  return movement != kNone ? movement : reader;
}

// Where all that reads it goes element by element, what stands before it is to blame: it ends a kernel of other axes.
MergeObstacle MergeExplainer::of_stored(ValueId stored, std::span<const NodeId> nodes) const {
  const NodeId reader = reader_in_need(stored, nodes);
  if (reader == kNone) return {};
  if (kinds_[reader] > OpPattern::kBroadcast) return of_kind(reader);
  std::unordered_set<NodeId> needed{graph_.value(stored).producer};
  for (auto n = nodes.rbegin(); n != nodes.rend(); ++n) {
    if (!needed.contains(*n)) continue;
    if (kinds_[*n] > OpPattern::kInjective) return of_kind(*n);
    for (const ValueId v : graph_.nodes[*n].inputs)
      if (v != kNone && graph_.value(v).producer != kNone) needed.insert(graph_.value(v).producer);
  }
  return of_need(reader, graph_.value(stored).producer);
}

MergeObstacle MergeExplainer::of_lowering(GroupId from, GroupId to) const {
  const std::vector<NodeId> nodes = nodes_of_both(plan_.groups[from], plan_.groups[to]);
  const std::vector<ValueId> outputs = needed_of(graph_, uses_, is_output_, nodes);
  const Lowered together = lowered(graph_, nodes, outputs);
  if (together.without_formula != kNone) return of_kind(together.without_formula);
  const auto is_given = [&](ValueId v) { return std::ranges::find(outputs, v) != outputs.end(); };
  for (const ValueId v : together.stored)
    if (!is_given(v)) return of_stored(v, nodes);
  // Nothing is stored but what others need: that, then, is what the two do not make in one kernel.
  for (const ValueId v : together.stored) {
    const NodeId reader = reader_in_need(v, nodes);
    if (reader == kNone || !std::ranges::binary_search(plan_.groups[from].nodes, graph_.value(v).producer)) continue;
    std::vector<ValueId> others = outputs;
    std::erase(others, v);
    const Lowered without = lowered(graph_, nodes, others);
    if (without.kernels > 1 || without.without_formula != kNone) return of_stored(v, nodes);
    const std::string value = in_quotes(graph_.nodes[graph_.value(v).producer].name);
    return {.blocker = reader,
            .would_allow = is_output_[v] != 0 ? fmt::format("do not return {} as an output", value)
                                              : fmt::format("if nothing else read {}", value)};
  }
  if (together.kernels <= 1) return {.blocker = kNone, .would_allow = kOneGroup};  // they have changed since
  const auto last =
      std::find_if(nodes.rbegin(), nodes.rend(), [&](NodeId n) { return kinds_[n] > OpPattern::kInjective; });
  return of_kind(last == nodes.rend() ? first_reader(from, to) : *last);
}

// A third group between the two.
MergeObstacle MergeExplainer::of_cycle(GroupId from, GroupId to) const {
  std::unordered_map<GroupId, NodeId> reached;  // the node by which the way left `from`
  std::vector<GroupId> waiting;
  const auto follow = [&](GroupId g, NodeId by) -> std::optional<NodeId> {
    for (const NodeId n : plan_.groups[g].nodes)
      for (std::uint32_t i = 0; i < graph_.nodes[n].output_count; ++i)
        for (const NodeId reader : uses_.of(graph_.nodes[n].first_output + i)) {
          const GroupId next = plan_.group_of[reader];
          if (next == from || next == g) continue;
          if (next == to) {
            if (g != from) return by;
            continue;
          }
          if (reached.emplace(next, g == from ? reader : by).second) waiting.push_back(next);
        }
    return std::nullopt;
  };
  std::optional<NodeId> between = follow(from, kNone);
  for (std::size_t i = 0; !between && i < waiting.size() && i < kMostGroupsOnTheWay; ++i)
    between = follow(waiting[i], reached.at(waiting[i]));
  if (!between) return {.blocker = kNone, .would_allow = kOneGroup};  // what lay between has joined one of them since
  NodeId read = kNone;
  for (const ValueId v : graph_.nodes[*between].inputs) {
    const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
    if (producer != kNone && plan_.group_of[producer] == from) read = producer;
  }
  return of_need(*between, read);
}

}  // namespace fusec
