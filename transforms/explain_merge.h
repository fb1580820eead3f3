// What stands between two groups that a phase after the three refused to make one: the node to blame, and the smallest
// change that would remove it. The three phases answer from kinds (transforms/fusion_trial); the later ones asked the
// lowering, so it is asked again here.
//
//     {norm} ──▶ {linear}, not_one_kernel     blocked by linear, which needs the norm's results stored;
//                                             "if "linear" were elemwise (now out_ewise_fusable)"
//     {a} ──▶ {c}, closes_cycle               blocked by b, of a third group: a ──▶ b ──▶ c
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/fusion_plan.h"

namespace fusec {

struct MergeObstacle {
  NodeId blocker = kNone;
  std::string would_allow;
};

class MergeExplainer {
 public:
  MergeExplainer(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan);

  // For what the plan's groups are now; `from` gives results to `to`, and `refused` was said of them.
  MergeObstacle obstacle(GroupId from, GroupId to, const FusionDecision& refused) const;

 private:
  MergeObstacle of_lowering(GroupId from, GroupId to) const;
  MergeObstacle of_stored(ValueId stored, std::span<const NodeId> nodes) const;
  MergeObstacle of_cycle(GroupId from, GroupId to) const;
  MergeObstacle of_kind(NodeId n) const;
  MergeObstacle of_need(NodeId reader, NodeId read) const;
  NodeId first_reader(GroupId from, GroupId to) const;
  NodeId reader_in_need(ValueId stored, std::span<const NodeId> nodes) const;

  const Graph& graph_;
  std::span<const OpPattern> kinds_;
  const FusionPlan& plan_;
  Uses uses_;
  std::vector<std::uint8_t> is_output_;
};

}  // namespace fusec
