// The groups of a plan as a graph that shrinks: which may become one, and what they become. Two groups may not where a
// way from one to the other leads through a third, since then each would need the other's result.
//
//     A ──▶ B ──▶ C        {A, C} closes a circle with B; {A, B}, {B, C} and {A, B, C} do not
//      └──────────▶
//
// Groups stand in an order that can be run, in a list whose places have rising numbers; a contraction rearranges only
// what stands between the first and the last of those it joins, and is refused where that is more than a limit.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "ir/fusion_plan.h"
#include "ir/graph.h"

namespace fusec {

class GroupGraph {
 public:
  GroupGraph(const Graph& graph, const FusionPlan& plan, std::shared_ptr<const Uses> uses = nullptr);

  const Graph& graph() const { return graph_; }
  const Uses& uses() const { return *uses_; }
  std::size_t size() const { return members_.size(); }  // of ids: a group that became part of another keeps its own
  bool alive(GroupId g) const { return alive_[g] != 0; }
  GroupId group_of(NodeId n) const { return group_of_[n]; }  // the first that computes it
  std::span<const NodeId> nodes(GroupId g) const { return {members_[g].begin(), members_[g].end()}; }
  bool is_before(GroupId a, GroupId b) const { return place_[a] < place_[b]; }
  bool is_output(ValueId v) const { return is_output_[v] != 0; }

  // Those that are there, in an order that can be run.
  std::vector<GroupId> order() const;

  // Groups whose results this one reads, each once, those that run last first; and those that read its results, those
  // that run first first.
  std::vector<GroupId> producers(GroupId g) const;
  std::vector<GroupId> consumers(GroupId g) const;
  // The same into a list that the caller keeps, which spares a graph of many groups the heap.
  void find_producers(GroupId g, std::vector<GroupId>& found) const;
  // Is the answer yes for some group whose results this one reads? Some are asked for more than once.
  template <typename Predicate>
  bool any_producer(GroupId g, Predicate predicate) const {
    bool any = false;
    for_each_producer(g, [&](GroupId producer) { any = any || predicate(producer); });
    return any;
  }

  // Results of these nodes (in order) that a graph output or a node of another group needs.
  std::vector<ValueId> outputs_of(std::span<const NodeId> nodes) const;
  // The nodes of several groups, in topological order, each once.
  std::vector<NodeId> nodes_of(std::span<const GroupId> groups) const;

  // Whether these groups can be one, and makes them the last of them (in the order). False leaves all as it was.
  bool contract(std::span<const GroupId> groups);

  // The consumer computes these nodes, which are in another group, itself from now on. No contraction may follow.
  void add_recomputed(GroupId consumer, std::span<const NodeId> nodes);

  // The readers compute these nodes of a group themselves from now on; those that leave it, it no more, which may not
  // be all that it has. No contraction may follow.
  void move_into(std::span<const GroupId> readers, std::span<const NodeId> nodes, GroupId from,
                 std::span<const NodeId> leaving);

  // Groups and recomputed nodes as they are now; what the groups are called is the caller's business.
  void write_to(FusionPlan& plan, std::span<const OpPattern> kinds) const;

 private:
  bool reads_any_marked(GroupId g) const;
  bool mark_between(std::span<const GroupId> sorted);
  template <typename F>
  void for_each_producer(GroupId g, F f) const {
    for (const NodeId n : members_[g]) {
      for (const ValueId v : graph_.nodes[n].inputs) {
        const NodeId from = v == kNone ? kNone : graph_.value(v).producer;
        if (from == kNone || group_of_[from] == g) continue;
        if (recomputed_by_[from] != 0 && std::ranges::binary_search(members_[g], from)) continue;
        f(group_of_[from]);
      }
    }
  }

  const Graph& graph_;
  const std::shared_ptr<const Uses> uses_;
  std::vector<std::uint8_t> is_output_, alive_;
  LargeVector<GroupId> group_of_;
  LargeVector<ShortList<NodeId, 4>> members_;
  LargeVector<GroupId> next_, previous_;
  GroupId first_ = kNone;
  LargeVector<std::uint32_t> place_;
  std::vector<std::uint32_t> claimed_by_;     // as FusionGroup::claimed_by; that of the latest claimed part
  LargeVector<std::uint32_t> recomputed_by_;  // how many groups compute a node beside its own
  std::vector<std::uint32_t> marked_;         // == now_: reached from the groups being joined
  std::uint32_t now_ = 0;
  mutable std::vector<std::uint32_t> seen_;
  mutable std::uint32_t seen_now_ = 0;
  std::vector<GroupId> between_;
};

}  // namespace fusec
