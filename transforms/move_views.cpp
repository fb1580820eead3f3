// Moves views and permutations of a product's operand from the product's group into the group that makes the operand. A
// warpgroup kernel can then copy the operand as it lies in memory, and storing rows in another order costs the other
// kernel nothing.
//
//     {attention} ──▶ {transpose, reshape, linear, add}      ▶      {attention, transpose, reshape} ──▶ {linear, add}
//
// A permutation moves only if its rows stay whole and are multiples of 16 bytes; others would be stored element by
// element.
#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "analysis/group_graph.h"
#include "transforms/algebraic_rules.h"
#include "transforms/merge_groups.h"
#include "transforms/merge_trial.h"

namespace fusec {
namespace {

constexpr std::uint8_t kViewPhase = 6;
constexpr std::size_t kMostViews = 8;  // longest chain of views
constexpr std::int64_t kRowBits = 128;
constexpr float kViewGain = 0.97F;  // largest ratio of new to old time that is worth a move

// A chain of views at the beginning of group `reader`, of a value that group `maker` computes.
struct Lead {
  GroupId maker = kNone, reader = kNone;
  std::vector<NodeId> views;
};

class ViewMoves {
 public:
  ViewMoves(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory)
      : graph_(graph),
        plan_(plan),
        kinds_(kinds),
        groups_(graph, plan, memory.uses(graph)),
        trial_(groups_, kinds, plan, memory),
        stays_(graph.nodes.size(), 0),
        shared_(plan.groups.size(), 0) {
    for (const PatternClaim& claim : plan.claims)
      for (const NodeId n : claim.nodes) stays_[n] = 1;
    for (const Recomputed& r : plan.recomputed) shared_[r.group] = shared_[plan.group_of[r.node]] = 1;
  }

  void run() {
    for (const GroupId g : groups_.order()) {
      if (!has_product(g) || !may_change(g)) continue;
      const std::vector<NodeId> nodes(groups_.nodes(g).begin(), groups_.nodes(g).end());
      for (const NodeId n : nodes)
        if (const std::optional<Lead> lead = lead_from(n, g)) move_where_it_pays(*lead);
    }
    if (changed_) groups_.write_to(plan_, kinds_);
  }

 private:
  bool has_product(GroupId g) const {
    return std::ranges::any_of(groups_.nodes(g), [&](NodeId n) { return kinds_[n] == OpPattern::kOutEwiseFusable; });
  }

  bool may_change(GroupId g) { return shared_[g] == 0 && trial_.open(g); }

  bool is_permutation(NodeId n) const {
    const std::string_view op = graph_.nodes[n].op->name;
    return op == "permute" || op == "transpose";
  }

  // Whether n is a view, or a permutation that keeps the last dimension, in rows of a multiple of 16 bytes.
  bool may_move(NodeId n) const {
    const Node& node = graph_.nodes[n];
    if (stays_[n] != 0 || node.op->special != Special::kNone) return false;
    if (!is_permutation(n)) return node.op->view;
    const TensorType& type = graph_.tensor(node.first_output);
    if (type.rank() == 0) return false;
    const auto row = type.shape.back().as_constant();
    return row && *row * bits(type.dtype) % kRowBits == 0 &&
           permutation_of(graph_, node, type.rank()).back() == static_cast<std::int64_t>(type.rank()) - 1;
  }

  bool is_read_once(ValueId v) const { return !groups_.is_output(v) && groups_.uses().of(v).size() == 1; }

  std::optional<Lead> lead_from(NodeId first, GroupId reader) {
    if (!may_move(first)) return std::nullopt;
    const ValueId made = graph_.nodes[first].inputs[0];
    if (graph_.value(made).kind != Value::Kind::kResult || !is_read_once(made)) return std::nullopt;
    Lead lead{.maker = groups_.group_of(graph_.value(made).producer), .reader = reader};
    if (lead.maker == reader || !may_change(lead.maker)) return std::nullopt;
    bool permutes = false;
    for (NodeId n = first; lead.views.size() < kMostViews && may_move(n);) {
      const ValueId result = graph_.nodes[n].first_output;
      if (!is_read_once(result)) break;
      lead.views.push_back(n);
      permutes = permutes || is_permutation(n);
      n = groups_.uses().of(result).front();
      if (groups_.group_of(n) != reader) return std::nullopt;
    }
    return permutes ? std::optional(std::move(lead)) : std::nullopt;
  }

  GroupInstead instead(GroupId g, std::vector<NodeId> nodes) const {
    std::vector<ValueId> outputs = groups_.outputs_of(nodes);
    return {.group = g, .nodes = std::move(nodes), .outputs = std::move(outputs)};
  }

  void move_where_it_pays(const Lead& lead) {
    std::vector<NodeId> more, rest;
    std::ranges::set_union(groups_.nodes(lead.maker), lead.views, std::back_inserter(more));
    std::ranges::set_difference(groups_.nodes(lead.reader), lead.views, std::back_inserter(rest));
    const std::vector<GroupInstead> moved{instead(lead.maker, std::move(more)), instead(lead.reader, std::move(rest))};
    const MergeAnswer answer = trial_.check_instead(moved);
    if (!answer.yes() || answer.joined_us > kViewGain * answer.apart_us) return;
    note(lead, answer);
    groups_.move_into(std::vector{lead.maker}, lead.views, lead.reader, lead.views);
    for (const GroupInstead& group : moved) trial_.note_instead(group);
    changed_ = true;
  }

  // Records the decisions: the maker's value is now fused with the views, and the views no longer with their reader.
  void note(const Lead& lead, const MergeAnswer& answer) {
    const NodeId maker = graph_.value(graph_.nodes[lead.views.front()].inputs[0]).producer;
    const NodeId last = lead.views.back();
    const NodeId reader = groups_.uses().of(graph_.nodes[last].first_output).front();
    plan_.decisions[maker] = {.meeting = last,
                              .rule = FusionRule::kJoined,
                              .phase = kViewPhase,
                              .joined_us = answer.joined_us,
                              .apart_us = answer.apart_us};
    plan_.decisions[last] = {.meeting = reader,
                             .rule = FusionRule::kPredictedSlower,
                             .phase = kViewPhase,
                             .joined_us = answer.apart_us,
                             .apart_us = answer.joined_us};
  }

  const Graph& graph_;
  FusionPlan& plan_;
  std::span<const OpPattern> kinds_;
  GroupGraph groups_;
  MergeTrial trial_;
  std::vector<std::uint8_t> stays_;   // by node: 1 if a pattern claimed it
  std::vector<std::uint8_t> shared_;  // by group: 1 if it shares a recomputed node with another group
  bool changed_ = false;
};

}  // namespace

void move_views(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory) {
  TrialMemory of_forms(memory.target());
  of_forms.distinguish_forms();
  of_forms.share_with(memory);
  ViewMoves(graph, kinds, plan, of_forms).run();
}

}  // namespace fusec
