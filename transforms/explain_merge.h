// What stands between two groups that a phase after the three refused to make one: the node to blame, and the smallest
// change that would remove it. The three phases answer from kinds (transforms/fusion_trial); the later ones asked the
// lowering, so it is asked again here, with an output less, or without the node that is suspected.
//
//     {norm} ──▶ {linear}, not_one_kernel     blocked by linear, which needs the norm's results stored;
//                                             "nothing that you can set: "linear" would have to be
//                                             elemwise (it is ...)"
//     {a} ──▶ {c}, closes_cycle               blocked by b, of a third group: a ──▶ b ──▶ c
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/fusion_plan.h"
#include "schedule/lowering/trial_lowering.h"

namespace fusec {

struct MergeObstacle {
  NodeId blocker = kNone;
  std::string would_allow;
  FusionRule rule = FusionRule::kJoined;  // that keeps them apart now: what was refused may have had another reason
  float joined_us = 0, apart_us = 0;      // where one kernel is possible
};

// A node of one group reads a result of a node of another.
struct GroupEdge {
  NodeId from = kNone, to = kNone;
};

class MergeExplainer {
 public:
  MergeExplainer(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan);

  // For what the groups of the edge's nodes are now; `refused` was said of them.
  MergeObstacle obstacle(GroupEdge edge, const FusionDecision& refused);
  // The first edge from one group to the other, of which there must be one.
  GroupEdge edge_between(GroupId from, GroupId to) const;

 private:
  struct Pair;
  bool is_one_launch(const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs);
  bool is_several_kernels(const Pair& pair);
  Pair pair_of(GroupEdge edge) const;
  MergeObstacle of_lowering(GroupEdge edge);
  MergeObstacle of_outputs(const Pair& pair);
  std::optional<MergeObstacle> of_cycle(GroupEdge edge) const;
  MergeObstacle of_kinds(const std::vector<NodeId>& nodes) const;
  MergeObstacle of_need(GroupEdge edge) const;
  MergeObstacle of_small_inputs(GroupEdge edge) const;
  bool is_complex(NodeId n) const;
  bool is_alone_to_blame(const Pair& pair, NodeId suspect);
  std::vector<NodeId> complex_before(NodeId n, std::span<const NodeId> nodes) const;
  std::vector<NodeId> reached_from(NodeId n, std::span<const NodeId> nodes) const;

  const Graph& graph_;
  std::span<const OpPattern> kinds_;
  const FusionPlan& plan_;
  Uses uses_;
  std::vector<std::uint8_t> is_output_;
  TrialMemory memory_;
  TrialLowering lowering_;
};

}  // namespace fusec
