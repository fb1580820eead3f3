// A graph of a plan's groups, in which groups can be merged. A merge must not close a cycle: no path between two merged
// groups may pass through a group that is not merged.
//
//     A ──▶ B ──▶ C        {A, C} forms a cycle with B; {A, B}, {B, C} and {A, B, C} do not
//      └──────────▶
//
// The groups form a linked list in an executable order, with increasing place numbers. A merge reorders only the part
// of the list between the first and the last merged group. It is refused if that part is longer than a limit.
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
  std::size_t size() const { return members_.size(); }  // number of group ids, merged groups included
  bool alive(GroupId g) const { return alive_[g] != 0; }
  GroupId group_of(NodeId n) const { return group_of_[n]; }  // the first group that computes it
  std::span<const NodeId> nodes(GroupId g) const { return {members_[g].begin(), members_[g].end()}; }
  bool is_before(GroupId a, GroupId b) const { return place_[a] < place_[b]; }
  bool is_output(ValueId v) const { return is_output_[v] != 0; }

  // Returns the live groups in an executable order.
  std::vector<GroupId> order() const;

  // Returns the groups that make what `g` reads, each group once; the one that runs last comes first.
  std::vector<GroupId> producers(GroupId g) const;
  std::vector<GroupId> consumers(GroupId g) const;
  // Writes what `producers` returns into `found`, which the caller reuses to save allocations.
  void find_producers(GroupId g, std::vector<GroupId>& found) const;
  // Returns whether `predicate` holds for some producer of `g`. May call it more than once for a producer.
  template <typename Predicate>
  bool any_producer(GroupId g, Predicate predicate) const {
    bool any = false;
    for_each_producer(g, [&](GroupId producer) { any = any || predicate(producer); });
    return any;
  }

  // Returns the results of these nodes (sorted) that are graph outputs or read by nodes outside the list.
  std::vector<ValueId> outputs_of(std::span<const NodeId> nodes) const;
  // Returns the nodes of several groups in topological order, each once.
  std::vector<NodeId> nodes_of(std::span<const GroupId> groups) const;

  // Merges the groups into the last of them. Returns false, and changes nothing, if they cannot be merged.
  bool contract(std::span<const GroupId> groups);

  // Lets `consumer` recompute `nodes`, which stay in their own groups too. Do not call `contract` afterwards.
  void add_recomputed(GroupId consumer, std::span<const NodeId> nodes);

  // Lets each of `readers` recompute `nodes`, and removes `leaving` from the group `from`. Do not call `contract`
  // afterwards.
  void move_into(std::span<const GroupId> readers, std::span<const NodeId> nodes, GroupId from,
                 std::span<const NodeId> leaving);

  // Writes the live groups and their recomputed nodes into the plan. Clears the names of changed groups; the caller
  // names them.
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
  std::vector<std::uint32_t> claimed_by_;  // as FusionGroup::claimed_by; after a merge that of the latest claimed group
  LargeVector<std::uint32_t> recomputed_by_;  // by node: how many other groups compute it besides its own
  std::vector<std::uint32_t> marked_;         // by group; equal to now_: reachable from the groups being merged
  std::uint32_t now_ = 0;
  mutable std::vector<std::uint32_t> seen_;
  mutable std::uint32_t seen_now_ = 0;
  std::vector<GroupId> between_;
};

}  // namespace fusec
