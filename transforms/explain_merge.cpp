#include "transforms/explain_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "ir/spelling.h"
#include "ir/type.h"
#include "transforms/fusion_trial.h"

namespace fusec {
namespace {

// Groups that are looked at for a way around; outputs that are each left out for a trial; nodes named in one sentence.
constexpr std::size_t kMostGroupsBetween = 4096, kMostOutputsTried = 8, kMostNamed = 8;
constexpr std::size_t kMostAbove = 64;  // nodes that make what a node reads
// Nodes that are lowered for answers; whoever is asked about beyond is named without a trial.
constexpr std::int64_t kMostNodesExplained = 200'000;

constexpr const char* kOneGroup = "one group for both in a plan file (--emit=plan, --plan)";

std::string names_of(const Graph& graph, std::span<const NodeId> nodes) {
  std::vector<std::string> names;
  for (const NodeId n : nodes) names.push_back(in_quotes(graph.nodes[n].name));
  return listed(names, kMostNamed);
}

bool has_one_element(const Shape& shape) {
  return std::ranges::all_of(shape, [](const Dim& d) { return d.is(1); });
}

}  // namespace

// Both groups as one.
struct MergeExplainer::Pair {
  GroupEdge edge;
  std::vector<NodeId> nodes;
  std::vector<ValueId> outputs;
};

MergeExplainer::MergeExplainer(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan)
    : graph_(graph),
      kinds_(kinds),
      plan_(plan),
      uses_(uses_of(graph)),
      is_output_(graph.value_count(), 0),
      lowering_(graph, memory_, kMostNodesExplained) {
  for (const ValueId v : graph.outputs) is_output_[v] = 1;
}

bool MergeExplainer::is_one_launch(const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs) {
  const TrialResult& tried = lowering_.of(nodes, outputs);
  return tried.known && tried.launches <= 1;
}

// As one group, one kernel would store what another reads; false where that is not known.
bool MergeExplainer::is_several_kernels(const Pair& pair) {
  const bool tried =
      std::ranges::all_of(pair.nodes, [&](NodeId n) { return static_cast<bool>(graph_.nodes[n].op->formula); });
  return tried && !lowering_.of(pair.nodes, pair.outputs).stored.empty();
}

MergeObstacle MergeExplainer::obstacle(GroupEdge edge, const FusionDecision& refused) {
  MergeObstacle found;
  FusionRule rule = refused.rule;
  // Both groups have grown since, perhaps: what lay between them may have joined one, or come between, and what one
  // kernel was possible for then may be several now.
  const bool was_possible = rule == FusionRule::kWorseForm || rule == FusionRule::kMoreBytes ||
                            rule == FusionRule::kPredictedSlower || rule == FusionRule::kNotTried;
  const std::optional<MergeObstacle> cycle =
      was_possible || rule == FusionRule::kClosesCycle ? of_cycle(edge) : std::nullopt;
  if (cycle)
    rule = FusionRule::kClosesCycle;
  else if (rule == FusionRule::kClosesCycle || (was_possible && is_several_kernels(pair_of(edge))))
    rule = FusionRule::kNotOneKernel;
  switch (rule) {
    case FusionRule::kNotOneKernel:
      found = of_lowering(edge);
      break;
    case FusionRule::kClosesCycle:
      found = *cycle;
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
  found.rule = rule;
  if (rule == refused.rule) found.joined_us = refused.joined_us, found.apart_us = refused.apart_us;
  if (found.blocker == kNone) found.blocker = refused.blocker;
  if (found.blocker == kNone) found.blocker = edge.to;
  return found;
}

GroupEdge MergeExplainer::edge_between(GroupId from, GroupId to) const {
  for (const NodeId n : plan_.groups[to].nodes)
    for (const ValueId v : graph_.nodes[n].inputs) {
      const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
      if (producer != kNone && std::ranges::binary_search(plan_.groups[from].nodes, producer)) return {producer, n};
    }
  return {plan_.groups[from].nodes.back(), plan_.groups[to].nodes.front()};
}

bool MergeExplainer::is_complex(NodeId n) const {
  return kinds_[n] > OpPattern::kInjective;
}

MergeObstacle MergeExplainer::of_kinds(const std::vector<NodeId>& nodes) const {
  return {.blocker = nodes.front(),
          .would_allow = nothing_but_another_kind(names_of(graph_, nodes), nodes.size() > 1, OpPattern::kElemwise,
                                                  kinds_[nodes.front()])};
}

MergeObstacle MergeExplainer::of_need(GroupEdge edge) const {
  return {.blocker = edge.to,
          .would_allow = fmt::format("nothing that you can set: {} needs {}", in_quotes(graph_.nodes[edge.to].name),
                                     in_quotes(graph_.nodes[edge.from].name))};
}

// What is made of a few numbers alone (a learning rate), none of them given back, would be prepared if they did not
// change.
MergeObstacle MergeExplainer::of_small_inputs(GroupEdge edge) const {
  std::vector<ValueId> inputs;
  std::vector<NodeId> above{edge.from};
  for (std::size_t i = 0; i < above.size(); ++i) {
    for (const ValueId v : graph_.nodes[above[i]].inputs) {
      const bool changes =
          v != kNone && (graph_.value(v).kind == Value::Kind::kInput || graph_.value(v).kind == Value::Kind::kResult);
      if (!changes) continue;
      if (is_output_[v] != 0 || graph_.type(v).is_tuple || !has_one_element(graph_.tensor(v).shape))
        return of_need(edge);
      const NodeId producer = graph_.value(v).producer;
      if (producer == kNone && std::ranges::find(inputs, v) == inputs.end()) inputs.push_back(v);
      if (producer != kNone && std::ranges::find(above, producer) == above.end()) above.push_back(producer);
      if (above.size() > kMostAbove) return of_need(edge);
    }
  }
  if (inputs.empty() || inputs.size() > kMostNamed) return of_need(edge);
  std::vector<std::string> names;
  for (const ValueId v : inputs) names.push_back(in_quotes(graph_.value(v).name));
  return {.blocker = edge.from,
          .would_allow = fmt::format("if {} were constant: {} would be prepared then", listed(names, kMostNamed),
                                     in_quotes(graph_.nodes[edge.from].name))};
}

// Of `nodes`, in topological order, this one and what needs it.
std::vector<NodeId> MergeExplainer::reached_from(NodeId n, std::span<const NodeId> nodes) const {
  std::vector<NodeId> reached{n};
  for (const NodeId later : nodes) {
    if (later <= n) continue;
    const bool reads = std::ranges::any_of(graph_.nodes[later].inputs, [&](ValueId v) {
      return v != kNone && graph_.value(v).producer != kNone &&
             std::ranges::binary_search(reached, graph_.value(v).producer);
    });
    if (reads) reached.push_back(later);
  }
  return reached;
}

// Of `nodes`, the last complex ones on each way to this one, which may be one itself.
std::vector<NodeId> MergeExplainer::complex_before(NodeId n, std::span<const NodeId> nodes) const {
  std::vector<NodeId> found;
  std::unordered_set<NodeId> needed{n};
  for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
    if (!needed.contains(*at)) continue;
    if (is_complex(*at)) {
      found.push_back(*at);
      continue;
    }
    for (const ValueId v : graph_.nodes[*at].inputs)
      if (v != kNone && graph_.value(v).producer != kNone) needed.insert(graph_.value(v).producer);
  }
  std::ranges::reverse(found);
  return found;
}

// Would what is left without it, and without what needs it, be one kernel?
bool MergeExplainer::is_alone_to_blame(const Pair& pair, NodeId suspect) {
  const std::vector<NodeId> gone = reached_from(suspect, pair.nodes);
  std::vector<NodeId> left;
  std::ranges::set_difference(pair.nodes, gone, std::back_inserter(left));
  if (left.empty() || !std::ranges::binary_search(left, pair.edge.to)) return true;
  std::vector<ValueId> outputs;
  for (const NodeId n : left)
    for (ValueId v = graph_.nodes[n].first_output; v < graph_.nodes[n].first_output + graph_.nodes[n].output_count;
         ++v) {
      const auto readers = uses_.of(v);
      const bool is_read =
          std::ranges::any_of(readers, [&](NodeId reader) { return std::ranges::binary_search(left, reader); });
      if (!is_read || std::ranges::find(pair.outputs, v) != pair.outputs.end()) outputs.push_back(v);
    }
  return is_one_launch(left, outputs);
}

// Values that others need besides, which one kernel would have to store as well: is it they?
MergeObstacle MergeExplainer::of_outputs(const Pair& pair) {
  std::vector<ValueId> suspects;
  for (const ValueId v : pair.outputs) {
    const auto readers = uses_.of(v);
    if (std::ranges::any_of(readers, [&](NodeId n) { return std::ranges::binary_search(pair.nodes, n); }))
      suspects.push_back(v);
  }
  const auto are_to_blame = [&](std::span<const ValueId> values) {
    std::vector<ValueId> others;
    for (const ValueId v : pair.outputs)
      if (std::ranges::find(values, v) == values.end()) others.push_back(v);
    return !others.empty() && is_one_launch(pair.nodes, others);
  };
  const auto told = [&](std::span<const ValueId> values) -> MergeObstacle {
    std::vector<NodeId> nodes;
    for (const ValueId v : values) nodes.push_back(graph_.value(v).producer);
    const std::string text = names_of(graph_, nodes);
    const bool returned = std::ranges::all_of(values, [&](ValueId v) { return is_output_[v] != 0; });
    return {.blocker = nodes.front(),
            .would_allow = returned ? fmt::format("do not return {}", text)
                                    : fmt::format("nothing that you can set: others need {} as well", text)};
  };
  if (suspects.size() > kMostOutputsTried) return {};
  for (const ValueId& v : suspects)
    if (are_to_blame({&v, 1})) return told({&v, 1});
  if (suspects.size() > 1 && are_to_blame(suspects)) return told(suspects);
  return {};
}

MergeExplainer::Pair MergeExplainer::pair_of(GroupEdge edge) const {
  Pair pair{.edge = edge, .nodes = {}, .outputs = {}};
  for (const NodeId n : {edge.from, edge.to}) {
    const auto& nodes = plan_.groups[plan_.group_of[n]].nodes;
    pair.nodes.insert(pair.nodes.end(), nodes.begin(), nodes.end());
  }
  std::ranges::sort(pair.nodes);
  pair.nodes.erase(std::unique(pair.nodes.begin(), pair.nodes.end()), pair.nodes.end());
  pair.outputs = needed_of(graph_, uses_, is_output_, pair.nodes);
  return pair;
}

MergeObstacle MergeExplainer::of_lowering(GroupEdge edge) {
  const Pair pair = pair_of(edge);
  for (const NodeId n : pair.nodes)
    if (!graph_.nodes[n].op->formula && graph_.nodes[n].op->special != Special::kTuple) return of_kinds({n});
  if (is_one_launch(pair.nodes, pair.outputs))
    return {.blocker = kNone, .would_allow = kOneGroup};  // they have changed since
  if (MergeObstacle found = of_outputs(pair); found.blocker != kNone) return found;
  for (const NodeId n : reached_from(edge.to, pair.nodes))
    if (is_complex(n)) {
      if (is_alone_to_blame(pair, n)) return of_kinds({n});
      break;
    }
  const std::vector<NodeId> before = complex_before(edge.from, pair.nodes);
  return before.empty() ? of_small_inputs(edge) : of_kinds(before);
}

// A third group between the two, if there is one.
std::optional<MergeObstacle> MergeExplainer::of_cycle(GroupEdge edge) const {
  const GroupId from = plan_.group_of[edge.from], to = plan_.group_of[edge.to];
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
  for (std::size_t i = 0; !between && i < waiting.size() && i < kMostGroupsBetween; ++i)
    between = follow(waiting[i], reached.at(waiting[i]));
  if (!between) return std::nullopt;
  NodeId read = edge.from;
  for (const ValueId v : graph_.nodes[*between].inputs) {
    const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
    if (producer != kNone && plan_.group_of[producer] == from) read = producer;
  }
  return of_need({read, *between});
}

}  // namespace fusec
