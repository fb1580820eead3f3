#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "analysis/group_graph.h"
#include "analysis/value_bytes.h"
#include "transforms/merge_groups.h"
#include "transforms/merge_trial.h"

namespace fusec {
namespace {

constexpr std::uint8_t kBorderPhase = 6;
constexpr std::size_t kMostBorderReaders = 8;  // readers that compute the moved nodes
constexpr std::size_t kMostMoved = 8;          // nodes in the moved chain

// The tail of a group that may move into the groups that read its result.
struct Border {
  GroupId group = kNone;
  ValueId stored = kNone;        // the value that the group would store instead of its result
  std::vector<NodeId> nodes;     // the chain from `stored` to the result, in topological order
  std::vector<GroupId> readers;  // groups that read the result, in execution order
  std::vector<NodeId> leaving;   // nodes of the chain that the group itself needs no more, in topological order
};

class BorderMoves {
 public:
  BorderMoves(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory)
      : graph_(graph),
        plan_(plan),
        kinds_(kinds),
        groups_(graph, plan, memory.uses(graph)),
        trial_(groups_, kinds, plan, memory),
        bytes_(graph),
        claim_of_(plan.claims.empty() ? 0 : graph.nodes.size(), kNone),
        in_several_(graph.nodes.size(), 0) {
    for (std::uint32_t c = 0; c < plan.claims.size(); ++c)
      for (const NodeId n : plan.claims[c].nodes) claim_of_[n] = c;
    note_recomputed();
  }

  void run() {
    for (const GroupId g : groups_.order())
      if (groups_.nodes(g).size() > 1 && trial_.open(g))
        for (const ValueId v : outputs_of(g)) move_what_makes(v, g);
    if (!changed_) return;
    groups_.write_to(plan_, kinds_);
    tell_refusals_of_what_is_left();
  }

 private:
  struct Move {
    NodeId node;
    NodeId left;  // the node that ends its former group now
  };

  // Keeps the outputs of groups that share nodes with others: a reader that recomputes a value needs no output for it,
  // which GroupGraph::outputs_of cannot know.
  void note_recomputed() {
    if (plan_.recomputed.empty()) return;
    const std::vector<GroupInterface> interfaces = group_interfaces(graph_, plan_);
    for (const Recomputed& r : plan_.recomputed) {
      in_several_[r.node] = 1;
      for (const GroupId g : {r.group, plan_.group_of[r.node]})
        if (!outputs_.contains(g)) keep({.group = g, .nodes = nodes_of(g), .outputs = interfaces[g].outputs});
    }
  }

  void keep(GroupInstead group) {
    trial_.note_instead(group);
    outputs_[group.group] = std::move(group.outputs);
  }

  std::vector<NodeId> nodes_of(GroupId g) const { return {groups_.nodes(g).begin(), groups_.nodes(g).end()}; }

  std::vector<ValueId> outputs_of(GroupId g) const {
    const auto known = outputs_.find(g);
    return known == outputs_.end() ? groups_.outputs_of(groups_.nodes(g)) : known->second;
  }

  void move_what_makes(ValueId v, GroupId g) {
    const std::optional<Border> border = border_before(v, g);
    if (!border) return;
    const std::uint64_t kind =
        trial_.in_haste() ? trial_.kind_of_question(g, border->readers[0], border->nodes.front(), border->nodes.back())
                          : 0;
    if (trial_.hopeless(kind)) return;
    std::vector<GroupInstead> moved = as_moved(*border);
    const MergeAnswer answer = trial_.check_instead(moved);
    trial_.note(kind, answer.yes());
    if (!answer.yes()) return;
    move(*border, answer);
    for (GroupInstead& group : moved) keep(std::move(group));
  }

  // Whether node n is cheap, deterministic and in one group only. `behind`: the nodes after it that would move as well.
  bool may_move(NodeId n, std::span<const NodeId> behind) const {
    const Node& node = graph_.nodes[n];
    return in_several_[n] == 0 && kinds_[n] <= OpPattern::kInjective && node.op->formula && node.op->deterministic &&
           node.output_count == 1 && may_leave_claim(n, behind);
  }

  // Whether n may leave its claim: the last remaining node of a claim may, if no part of the pattern is named after it
  // (the epilogue of a product).
  bool may_leave_claim(NodeId n, std::span<const NodeId> behind) const {
    if (claim_of_.empty() || claim_of_[n] == kNone) return true;
    const PatternClaim& claim = plan_.claims[claim_of_[n]];
    const auto gone =
        static_cast<std::size_t>(std::ranges::count_if(behind, [&](NodeId m) { return claim_of_[m] == claim_of_[n]; }));
    return gone + 1 < claim.nodes.size() && claim.nodes[claim.nodes.size() - 1 - gone] == n &&
           std::ranges::none_of(claim.parts, [&](const auto& part) { return part.second == n; });
  }

  // The only operand of n that group g computes and no other group does; kNone if there are several, or none.
  ValueId operand_within(GroupId g, NodeId n) const {
    ValueId found = kNone;
    for (const ValueId v : graph_.nodes[n].inputs) {
      if (v == kNone || graph_.value(v).kind != Value::Kind::kResult) continue;
      const NodeId producer = graph_.value(v).producer;
      if (!std::ranges::binary_search(groups_.nodes(g), producer)) continue;
      if (in_several_[producer] != 0 || (found != kNone && found != v)) return kNone;
      found = v;
    }
    return found;
  }

  // Bytes of the distinct other operands of a node.
  std::int64_t bytes_beside(NodeId n, ValueId operand) {
    std::int64_t sum = 0;
    for (const ValueId v : std::set<ValueId>(graph_.nodes[n].inputs.begin(), graph_.nodes[n].inputs.end()))
      if (v != kNone && v != operand) sum += bytes_.of(v);
    return sum;
  }

  // Walks back from v to the value with the fewest bytes, including the operands that the moved nodes read besides.
  // Returns nothing if v itself has the fewest.
  std::optional<Border> border_before(ValueId v, GroupId g) {
    if (groups_.is_output(v)) return std::nullopt;
    Border border{.group = g};
    std::size_t best = 0;
    std::int64_t least = bytes_.of(v), beside = 0;
    for (NodeId n = graph_.value(v).producer; border.nodes.size() < kMostMoved && may_move(n, border.nodes);) {
      const ValueId operand = operand_within(g, n);
      if (operand == kNone) break;
      border.nodes.push_back(n);
      beside += bytes_beside(n, operand);
      if (bytes_.of(operand) + beside < least) {
        least = bytes_.of(operand) + beside;
        best = border.nodes.size();
        border.stored = operand;
      }
      n = graph_.value(operand).producer;
    }
    border.nodes.resize(best);
    std::ranges::reverse(border.nodes);
    if (best == 0 || !find_readers(v, border)) return std::nullopt;
    find_leaving(border);
    return border;
  }

  bool find_readers(ValueId v, Border& border) {
    for (const NodeId user : groups_.uses().of(v)) {
      const GroupId reader = groups_.group_of(user);
      if (reader == border.group || std::ranges::find(border.readers, reader) != border.readers.end()) continue;
      if (in_several_[user] != 0 || border.readers.size() == kMostBorderReaders || !trial_.open(reader)) return false;
      border.readers.push_back(reader);
    }
    std::ranges::sort(border.readers, [&](GroupId a, GroupId b) { return groups_.is_before(a, b); });
    return !border.readers.empty();
  }

  // Whether v is a graph output, or a group other than border.group and the readers reads it.
  bool is_read_elsewhere(const Border& border, ValueId v) const {
    return groups_.is_output(v) || std::ranges::any_of(groups_.uses().of(v), [&](NodeId user) {
             const GroupId reader = groups_.group_of(user);
             return in_several_[user] != 0 ||
                    (reader != border.group && std::ranges::find(border.readers, reader) == border.readers.end());
           });
  }

  // Finds the trailing nodes of the chain that no remaining node of the group reads.
  void find_leaving(Border& border) const {
    for (auto n = border.nodes.rbegin(); n != border.nodes.rend(); ++n) {
      const ValueId result = graph_.nodes[*n].first_output;
      const bool stays =
          is_read_elsewhere(border, result) || std::ranges::any_of(groups_.uses().of(result), [&](NodeId user) {
            return groups_.group_of(user) == border.group &&
                   std::ranges::find(border.leaving, user) == border.leaving.end();
          });
      if (stays) return;
      border.leaving.insert(border.leaving.begin(), *n);
    }
  }

  std::vector<GroupInstead> as_moved(const Border& border) const {
    const std::span<const NodeId> all = groups_.nodes(border.group);
    GroupInstead rest{.group = border.group};
    std::ranges::set_difference(all, border.leaving, std::back_inserter(rest.nodes));
    rest.outputs.push_back(border.stored);
    for (const ValueId v : outputs_of(border.group))
      if (!std::ranges::binary_search(border.nodes, graph_.value(v).producer) || is_read_elsewhere(border, v))
        rest.outputs.push_back(v);
    std::ranges::sort(rest.outputs);
    rest.outputs.erase(std::unique(rest.outputs.begin(), rest.outputs.end()), rest.outputs.end());
    std::vector<GroupInstead> instead{std::move(rest)};
    for (const GroupId reader : border.readers) {
      GroupInstead& with = instead.emplace_back(GroupInstead{.group = reader, .outputs = outputs_of(reader)});
      std::ranges::set_union(groups_.nodes(reader), border.nodes, std::back_inserter(with.nodes));
    }
    return instead;
  }

  void move(const Border& border, const MergeAnswer& answer) {
    const NodeId left = graph_.value(border.stored).producer;
    const NodeId meeting = groups_.nodes(border.readers[0]).back();
    groups_.move_into(border.readers, border.nodes, border.group, border.leaving);
    changed_ = true;
    if (!claim_of_.empty())
      for (const NodeId n : border.leaving)
        if (claim_of_[n] != kNone) std::erase(plan_.claims[claim_of_[n]].nodes, n);
    if (border.readers.size() > 1 || border.leaving.size() < border.nodes.size())
      for (const NodeId n : border.nodes) in_several_[n] = 1;
    for (const NodeId n : border.leaving)
      plan_.decisions[n] = {.meeting = meeting,
                            .rule = FusionRule::kJoined,
                            .phase = kBorderPhase,
                            .joined_us = answer.joined_us,
                            .apart_us = answer.apart_us};
    // The new last node was fused with the moved nodes before; its decision says why it no longer is.
    plan_.decisions[left] = {
        .meeting = border.nodes.front(),
        .rule = answer.apart_us > answer.joined_us ? FusionRule::kPredictedSlower : FusionRule::kMoreBytes,
        .phase = kBorderPhase,
        .joined_us = answer.apart_us,
        .apart_us = answer.joined_us};
    for (const NodeId n : border.leaving) moves_.push_back({n, left});
  }

  // Refusals name a group by its last node. If that node has moved, name the group's new last node. A node that moved
  // several times was the last node of its first group only, hence the stable sort.
  void tell_refusals_of_what_is_left() {
    std::ranges::stable_sort(moves_, {}, &Move::node);
    const auto rename = [&](NodeId& n) {
      const auto moved = std::ranges::lower_bound(moves_, n, {}, &Move::node);
      if (moved != moves_.end() && moved->node == n) n = moved->left;
    };
    for (RefusedMerge& refused : plan_.refused) {
      rename(refused.from);
      rename(refused.to);
      rename(refused.decision.meeting);
    }
  }

  const Graph& graph_;
  FusionPlan& plan_;
  std::span<const OpPattern> kinds_;
  GroupGraph groups_;
  MergeTrial trial_;
  ValueBytes bytes_;
  std::vector<std::uint32_t> claim_of_;   // by node: index into FusionPlan::claims; empty if there are no claims
  std::vector<std::uint8_t> in_several_;  // by node: 1 if several groups compute it
  std::unordered_map<GroupId, std::vector<ValueId>> outputs_;  // of changed groups and groups that share nodes
  std::vector<Move> moves_;
  bool changed_ = false;
};

}  // namespace

void move_borders(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory) {
  BorderMoves(graph, kinds, plan, memory).run();
}

}  // namespace fusec
