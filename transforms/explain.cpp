#include "transforms/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "analysis/value_bytes.h"
#include "ir/error.h"
#include "ir/spelling.h"
#include "transforms/explain_merge.h"
#include "transforms/fusion_trial.h"

namespace fusec {
namespace {

constexpr int kMostChanges = 8;  // "the smallest change" is not a rebuilt model

// Beyond the first the ledger suggests what would remove the obstacle it names without trying whether that is enough;
// beyond the second it names the node where ways meet instead of searching the one on the way that is to blame.
constexpr std::size_t kMostNodesForTriedLedger = 400;
constexpr std::size_t kMostNodesForPreciseLedger = 20000;

// Global memory traffic of groups in a run, as they are or as one. A prepared group has none, until it is one with a
// group that runs; its results are then stored for nobody, others still read what was prepared.
class Traffic {
 public:
  Traffic(const Graph& graph, const FusionPlan& plan)
      : graph_(graph), plan_(plan), bytes_(graph), uses_(uses_of(graph)), is_output_(graph.value_count(), 0) {
    for (const ValueId v : graph.outputs) is_output_[v] = 1;
  }

  std::int64_t saved_by_joining(std::vector<GroupId> groups) {
    std::ranges::sort(groups);
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    const bool runs = std::ranges::any_of(groups, [&](GroupId g) { return !plan_.groups[g].prepared; });
    std::int64_t apart = 0;
    for (const GroupId g : groups)
      if (!runs || !plan_.groups[g].prepared) apart += of({g}, false);
    return apart - of(groups, runs);
  }

  // What an edge costs: the reading group's load, and the store if nobody else needs it.
  std::int64_t of_edge(ValueId v, GroupId reader) {
    const bool others =
        is_output_[v] != 0 || std::ranges::any_of(uses_.of(v), [&](NodeId n) {
          return plan_.group_of[n] != reader && plan_.group_of[n] != plan_.group_of[graph_.value(v).producer];
        });
    return bytes_.of(v) * (others ? 1 : 2);
  }

 private:
  // `runs`: what the prepared groups among them make is not stored.
  std::int64_t of(const std::vector<GroupId>& groups, bool runs) {
    std::vector<NodeId> nodes;
    for (const GroupId g : groups)
      nodes.insert(nodes.end(), plan_.groups[g].nodes.begin(), plan_.groups[g].nodes.end());
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    std::unordered_set<ValueId> read;
    std::int64_t sum = 0;
    for (const NodeId n : nodes)
      for (const ValueId v : graph_.nodes[n].inputs) {
        if (v == kNone) continue;
        const NodeId producer = graph_.value(v).producer;
        if (producer != kNone && std::ranges::binary_search(nodes, producer)) continue;
        if (read.insert(v).second) sum += bytes_.of(v);
      }
    for (const ValueId v : needed_of(graph_, uses_, is_output_, nodes))
      if (!runs || !plan_.groups[plan_.group_of[graph_.value(v).producer]].prepared) sum += bytes_.of(v);
    return sum;
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  ValueBytes bytes_;
  const Uses uses_;
  std::vector<std::uint8_t> is_output_;
};

Obstacle obstacle_for_people(const FusionTrial& trial, const FusionPlan& plan, const VertexObstacle& obstacle,
                             Traffic& traffic) {
  Obstacle result{.from = trial.node_of(obstacle.leader),
                  .to = trial.node_of(obstacle.meeting),
                  .rule = obstacle.decision.rule,
                  .phase = obstacle.decision.phase,
                  .blocker = trial.node_of(obstacle.decision.blocker)};
  if (result.to != kNone) {
    result.bytes_saved = traffic.saved_by_joining({plan.group_of[result.from], plan.group_of[result.to]});
  }
  result.would_allow = trial.suggest(obstacle).value_or("");
  return result;
}

// The first obstacle between neighbours among the nodes asked about.
std::vector<VertexObstacle> all_obstacles(const FusionTrial& trial, const std::vector<Vertex>& vertices) {
  std::vector<VertexObstacle> all;
  for (std::size_t i = 1; i < vertices.size(); ++i) {
    for (const VertexObstacle& o : trial.obstacles(vertices[i - 1], vertices[i])) {
      if (std::ranges::find(all, o.leader, &VertexObstacle::leader) == all.end()) all.push_back(o);
    }
  }
  std::ranges::sort(all, {}, &VertexObstacle::leader);
  return all;
}

struct Remedy {
  std::vector<std::string> changes;
  std::string without;  // no changes: why the obstacle at which the search ended has no remedy, where that is known
};

// Removes one obstacle after the other until the vertices are together.
Remedy changes_that_join(FusionTrial& trial, const std::vector<Vertex>& vertices) {
  Remedy remedy;
  while (!trial.together(vertices)) {
    if (remedy.changes.size() == kMostChanges) return {};
    std::optional<std::string> change, without;
    for (const VertexObstacle& obstacle : all_obstacles(trial, vertices)) {
      change = trial.remove(obstacle, vertices);
      if (change) break;
      if (!without) without = trial.suggest(obstacle);
    }
    if (!change) return {.changes = {}, .without = without.value_or("")};
    if (std::ranges::find(remedy.changes, *change) != remedy.changes.end()) return {};
    remedy.changes.push_back(*change);
  }
  return remedy;
}

// A plan that did not come from the partitioner's questions alone: what it says itself.
Obstacle obstacle_of_plan(const FusionPlan& plan, NodeId from, NodeId to) {
  Obstacle obstacle{.from = from, .to = to, .rule = plan.decisions[from].rule};
  if (obstacle.rule == FusionRule::kJoined) obstacle.rule = FusionRule::kUndecided;
  if (plan.strategy == Strategy::kUnfused) obstacle.would_allow = "--strategy=tvm or --strategy=full";
  if (obstacle.rule == FusionRule::kGivenPlan) obstacle.would_allow = "one group for both in the plan file";
  return obstacle;
}

// The phases after the three ask the lowering, and leave with the plan what it said about two groups. Groups that grew
// since are still those two; what became of groups that are one now no longer matters.
class RefusedMerges {
 public:
  explicit RefusedMerges(const FusionPlan& plan) : plan_(plan) {
    for (std::size_t i = 0; i < plan.refused.size(); ++i) {
      const RefusedMerge& refused = plan.refused[i];
      const GroupId from = plan.group_of[refused.from], to = plan.group_of[refused.to];
      if (from != to) last_[{from, to}] = i;
    }
  }

  const FusionDecision* about(GroupId from, GroupId to) const {
    const auto it = last_.find({from, to});
    return it == last_.end() ? nullptr : &plan_.refused[it->second].decision;
  }

 private:
  const FusionPlan& plan_;
  std::map<std::pair<GroupId, GroupId>, std::size_t> last_;
};

constexpr const char* kNothingPrepared = "--disable-pass=prepare-constants and --disable-pass=prepare-groups";

// Where each group on the way from one of these groups to the next was refused by a later phase; empty where the three
// phases have the say about some of them.
std::vector<Obstacle> refused_merges(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan,
                                     const std::vector<NodeId>& nodes, const std::vector<GroupId>& groups,
                                     Traffic& traffic) {
  std::vector<Obstacle> obstacles;
  const RefusedMerges merges(plan);
  std::optional<MergeExplainer> explainer;  // it looks at the whole graph: where there is something to explain
  if (!plan.refused.empty()) explainer.emplace(graph, kinds, plan);
  for (std::size_t i = 1; i < groups.size(); ++i) {
    if (groups[i - 1] == groups[i]) continue;
    if (plan.groups[groups[i - 1]].prepared != plan.groups[groups[i]].prepared) {
      const NodeId prepared = plan.groups[groups[i]].prepared ? nodes[i] : nodes[i - 1];
      obstacles.push_back({.from = prepared,
                           .to = prepared == nodes[i] ? nodes[i - 1] : nodes[i],
                           .rule = FusionRule::kPrepared,
                           .blocker = prepared,
                           .bytes_saved = traffic.saved_by_joining({groups[i - 1], groups[i]}),
                           .would_allow = kNothingPrepared});
      continue;
    }
    const FusionDecision* refused = merges.about(groups[i - 1], groups[i]);
    if (refused == nullptr) return {};
    const GroupEdge edge = explainer->edge_between(groups[i - 1], groups[i]);
    MergeObstacle obstacle = explainer->obstacle(edge, *refused);
    obstacles.push_back({.from = edge.from,
                         .to = edge.to,
                         .rule = obstacle.rule,
                         .phase = refused->phase,
                         .blocker = obstacle.blocker,
                         .bytes_saved = traffic.saved_by_joining({groups[i - 1], groups[i]}),
                         .would_allow = std::move(obstacle.would_allow),
                         .joined_us = obstacle.joined_us,
                         .apart_us = obstacle.apart_us});
  }
  return obstacles;
}

// The node whose ways onward were asked about is itself what stands in the way.
bool is_about_leader(FusionRule rule) {
  return rule == FusionRule::kFusionDisabled || rule == FusionRule::kGraphOutput || rule == FusionRule::kUnused ||
         rule == FusionRule::kOpaqueSource || rule == FusionRule::kReductionEndsGroup;
}

bool is_of_partitioner(const FusionPlan& plan, NodeId n) {
  return plan.strategy != Strategy::kUnfused && plan.decisions[n].rule != FusionRule::kGivenPlan;
}

}  // namespace

std::vector<NodeId> find_nodes(const Graph& graph, std::span<const std::string> names) {
  std::vector<NodeId> nodes;
  for (const std::string& node_name : names) nodes.push_back(graph.required_node(node_name));
  return nodes;
}

Explanation explain(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan,
                    std::span<const NodeId> nodes) {
  Explanation answer{.nodes = {nodes.begin(), nodes.end()}};
  std::ranges::sort(answer.nodes);
  answer.nodes.erase(std::unique(answer.nodes.begin(), answer.nodes.end()), answer.nodes.end());
  if (answer.nodes.empty()) return answer;
  std::vector<GroupId> groups;
  for (const NodeId n : answer.nodes) groups.push_back(plan.group_of[n]);
  answer.one_kernel = std::ranges::all_of(groups, [&](GroupId g) { return g == groups.front(); });
  if (answer.one_kernel) {
    for (const NodeId n : answer.nodes) answer.joined.push_back(plan.decisions[n]);
    return answer;
  }
  Traffic traffic(graph, plan);
  answer.obstacles = refused_merges(graph, kinds, plan, answer.nodes, groups, traffic);
  if (answer.obstacles.empty() && is_of_partitioner(plan, answer.nodes.front())) {
    FusionTrial trial(graph, kinds, plan);
    std::vector<Vertex> vertices;
    for (const NodeId n : answer.nodes) vertices.push_back(trial.vertex_of(n));
    for (const VertexObstacle& o : all_obstacles(trial, vertices)) {
      Obstacle obstacle = obstacle_for_people(trial, plan, o, traffic);
      // What the three phases kept apart a later one may have joined.
      const bool joined = obstacle.to != kNone && plan.group_of[obstacle.from] == plan.group_of[obstacle.to];
      if (!joined) answer.obstacles.push_back(std::move(obstacle));
    }
    answer.would_allow = changes_that_join(trial, vertices).changes;
  }
  if (answer.obstacles.empty()) {
    for (std::size_t i = 1; i < answer.nodes.size(); ++i) {
      if (groups[i - 1] == groups[i]) continue;
      Obstacle& obstacle = answer.obstacles.emplace_back(obstacle_of_plan(plan, answer.nodes[i - 1], answer.nodes[i]));
      obstacle.bytes_saved = traffic.saved_by_joining({groups[i - 1], groups[i]});
    }
  }
  // One kernel for these nodes is one for what lies between, too.
  for (const Obstacle& o : answer.obstacles) {
    groups.push_back(plan.group_of[o.from]);
    if (o.to != kNone) groups.push_back(plan.group_of[o.to]);
  }
  answer.bytes_saved = traffic.saved_by_joining(groups);
  return answer;
}

void split_by_kernels(Explanation& explanation, const Graph& graph, GroupKernels made) {
  if (!explanation.one_kernel || made.kernels <= 1) return;
  explanation.one_kernel = false;
  ValueBytes bytes(graph);
  for (const ValueId v : made.stored) explanation.bytes_saved += 2 * bytes.of(v);
  explanation.split = std::move(made);
}

std::vector<LedgerEntry> ledger(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan) {
  std::vector<LedgerEntry> entries;
  if (graph.nodes.empty()) return entries;
  Traffic traffic(graph, plan);
  const RefusedMerges merges(plan);
  std::optional<MergeExplainer> explainer;  // it looks at the whole graph: where there is something to explain
  if (!plan.refused.empty()) explainer.emplace(graph, kinds, plan);
  std::optional<FusionTrial> trial;
  if (is_of_partitioner(plan, 0)) trial.emplace(graph, kinds, plan);
  const bool tried = graph.nodes.size() <= kMostNodesForTriedLedger;
  const bool precise = graph.nodes.size() <= kMostNodesForPreciseLedger;
  std::unordered_map<Vertex, VertexObstacle> known;      // by leader
  std::vector<NodeId> noted(graph.nodes.size(), kNone);  // the latest consumer noted for a producer
  for (NodeId to = 0; to < graph.nodes.size(); ++to) {
    for (const ValueId v : graph.nodes[to].inputs) {
      if (v == kNone || graph.value(v).kind != Value::Kind::kResult) continue;
      const NodeId from = graph.value(v).producer;
      if (plan.group_of[from] == plan.group_of[to] || noted[from] == to) continue;
      if (std::ranges::binary_search(plan.groups[plan.group_of[to]].nodes, from)) continue;  // computed there again
      noted[from] = to;
      const Obstacle by_plan = obstacle_of_plan(plan, from, to);
      LedgerEntry entry{.from = from, .to = to, .rule = by_plan.rule, .would_allow = by_plan.would_allow};
      entry.bytes_saved = traffic.of_edge(v, plan.group_of[to]);
      if (plan.groups[plan.group_of[from]].prepared && !plan.groups[plan.group_of[to]].prepared) {
        entry.rule = FusionRule::kPrepared;
        entry.blocker = from;
        entry.bytes_saved = traffic.saved_by_joining({plan.group_of[from], plan.group_of[to]});
        entry.would_allow = kNothingPrepared;
      } else if (const FusionDecision* refused = merges.about(plan.group_of[from], plan.group_of[to])) {
        MergeObstacle obstacle = explainer->obstacle({from, to}, *refused);
        entry.rule = obstacle.rule;
        entry.phase = refused->phase;
        entry.blocker = obstacle.blocker;
        entry.would_allow = std::move(obstacle.would_allow);
        entry.joined_us = obstacle.joined_us;
        entry.apart_us = obstacle.apart_us;
      } else if (trial) {
        const Vertex leader = trial->result().root[trial->vertex_of(from)];
        if (!known.contains(leader)) known.emplace(leader, trial->obstacle_of(leader, precise));
        const VertexObstacle& obstacle = known.at(leader);
        if (obstacle.decision.rule != FusionRule::kJoined) {
          entry.rule = obstacle.decision.rule;
          entry.phase = obstacle.decision.phase;
          entry.blocker = trial->node_of(is_about_leader(entry.rule) ? leader : obstacle.decision.blocker);
          entry.would_allow = trial->suggest(obstacle).value_or("");
          if (tried) {
            FusionTrial changed = *trial;
            const Remedy remedy = changes_that_join(changed, {trial->vertex_of(from), trial->vertex_of(to)});
            if (!remedy.changes.empty())
              entry.would_allow = fmt::format("{}", fmt::join(remedy.changes, "; and "));
            else if (!remedy.without.empty())
              entry.would_allow = remedy.without;
          }
        }
      }
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

}  // namespace fusec
