// Whether groups would be one kernel is not foretold, it is tried: their nodes are lowered together, and the answer is
// yes where one kernel comes out, of a form no worse than theirs, that is not predicted to take longer.
//
//     {linear}, {gelu}       one kernel, a product as before          yes
//     {softmax}, {linear}    two kernels: softmax is stored           no: kNotOneKernel
//     {linear}, {cumsum}     an op without a formula                  no
//
// Trials are kept (schedule/lowering/trial_lowering.h): in a model of many equal layers each question is answered once.
// A model of ever new shapes has a budget, after which questions that are new get the answer no. In a graph of very
// many nodes a kind of question that was answered no again and again is put no more, so that the time a node does not
// grow.
#pragma once

#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "analysis/group_graph.h"
#include "ir/fusion_plan.h"
#include "schedule/lowering/trial_lowering.h"

namespace fusec {

// kJoined, or the rule that keeps groups apart; and what was predicted, where that was asked.
struct MergeAnswer {
  FusionRule rule = FusionRule::kJoined;
  float joined_us = 0, apart_us = 0;
  bool yes() const { return rule == FusionRule::kJoined; }
};

// A group as it would be, with nodes more or less.
struct GroupInstead {
  GroupId group = kNone;
  std::vector<NodeId> nodes;     // in topological order
  std::vector<ValueId> outputs;  // in order
};

class MergeTrial {
 public:
  MergeTrial(const GroupGraph& groups, std::span<const OpPattern> kinds, const FusionPlan& plan, TrialMemory& memory);

  // Whether anything may join this group: fused by us, at every launch, every op in it of known meaning and free to
  // fuse.
  bool open(GroupId g);

  // Whether these groups may be one. Whether they close a circle is not asked here.
  MergeAnswer ask(std::span<const GroupId> parts);
  // The same for two groups of which neither reads the other's results, if they are to run side by side.
  MergeAnswer ask_beside(GroupId a, GroupId b);
  // They do now, as group `kept`: what is known of both is known of it.
  void note_beside(GroupId a, GroupId b, GroupId kept);
  // From now on products may take in reductions of their rows: what may be part of attention must have had its turn.
  void allow_row_products() { row_products_ = true; }
  // Whether all readers would be one kernel each, in forms no worse, and together take no longer and read no more, if
  // each computed the producer's nodes itself.
  MergeAnswer ask_again(GroupId producer, std::span<const GroupId> readers);
  // Whether with other nodes these groups would be as few launches, in forms no worse, and faster or of fewer bytes.
  MergeAnswer ask_instead(std::span<const GroupInstead> groups);
  // It is so now.
  void note_instead(const GroupInstead& group) {
    of_group_[group.group] = {.nodes = static_cast<std::uint32_t>(group.nodes.size()),
                              .result = &lowering_.of(group.nodes, group.outputs)};
  }
  std::int64_t bytes(GroupId g) { return of_group(g).bytes; }
  // Nothing but element by element, or views.
  bool is_pointwise(GroupId g) { return of_group(g).strength == 0 && !of_group(g).has_elements; }
  // Rows that are reduced, and no product.
  bool is_rows(GroupId g);

  // In graphs of very many nodes: a short description of the question whether these may join, by the nodes between
  // which data flows (or which read the same); whether it is hopeless; and what became of it.
  bool in_haste() const { return groups_.graph().nodes.size() > kMostNodesWithCare; }
  std::uint64_t kind_of_question(GroupId a, GroupId b, NodeId from, NodeId to) const;
  bool hopeless(std::uint64_t kind) const;
  void note(std::uint64_t kind, bool joined);

 private:
  static constexpr std::size_t kMostNodesWithCare = 20'000;
  const TrialResult& lowered(std::span<const NodeId> nodes) { return lowering_.of(nodes, groups_.outputs_of(nodes)); }
  struct OfGroup {
    std::uint32_t nodes = 0;      // of the group when this was found out
    std::uint32_t arguments = 0;  // 0: not counted
    const TrialResult* result = nullptr;
  };
  OfGroup& known_of(GroupId g);
  const TrialResult& of_group(GroupId g) { return *known_of(g).result; }
  std::uint32_t arguments_of(GroupId g);
  FusionRule compare(const TrialResult& together, std::span<const GroupId> parts);
  std::size_t argument_count(std::span<const NodeId> nodes) const;
  FusionRule within_limits(std::span<const GroupId> groups) const;
  FusionRule nodes_within_limits(std::span<const NodeId> nodes) const;

  const GroupGraph& groups_;
  std::span<const OpPattern> kinds_;
  const FusionPlan& plan_;
  TrialLowering lowering_;
  bool row_products_ = false;
  LargeVector<OfGroup> of_group_;
  std::deque<TrialResult> beside_;  // of groups that stand side by side
  std::vector<std::uint8_t> open_;  // of a group: 0 not known yet, 1 no, 2 yes
  struct Record {
    std::uint32_t yes = 0, no = 0;
  };
  std::unordered_map<std::uint64_t, Record> records_;
};

}  // namespace fusec
