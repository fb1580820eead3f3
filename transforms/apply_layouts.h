// Rewrites a graph and its plan so that some values are stored channels-last.
//
//   before   group 1 {y = conv2d(x, w), z = relu(y)}          group 2 {p = conv2d(z, v)}
//   after    group 0, prepared {v_last = permute(v)}
//            group 1 {y, z, z_last = permute(z)}              group 2 {z_first = permute(z_last), v_first, p}
//
// The groups then exchange z_last. z and z_first exist only inside kernels, where a permutation is index arithmetic. No
// launch is added: constants are permuted in M_prepare.
#pragma once

#include <span>
#include <vector>

#include "ir/fusion_plan.h"
#include "ir/graph.h"

namespace fusec {

struct PlanWithLayouts {
  Graph graph;
  FusionPlan plan;  // the groups of before with their ids, then added groups that prepare weights
};

// A value whose dimension `channels` becomes the last in memory: 1 for an image; for weights with leading dimensions of
// 1 a later one.
struct ValueLayout {
  ValueId value;
  std::size_t channels;
};

// Permutations that move dimension `channels` to the end (N, H, W, C) and back (N, C, H, W).
std::vector<std::int64_t> channels_last(std::size_t rank, std::size_t channels);
std::vector<std::int64_t> channels_first(std::size_t rank, std::size_t channels);

// The groups that compute each node: its own group first, then those that recompute it.
class GroupsOfNodes {
 public:
  GroupsOfNodes(const Graph& graph, const FusionPlan& plan);
  std::vector<GroupId> of(NodeId n) const;

 private:
  const FusionPlan& plan_;
  std::vector<std::uint32_t> begin_;  // by node: its first entry in recomputed_, which is sorted by node
  std::vector<Recomputed> recomputed_;
};

// `values` are constants, and results that one group computes and others read. `constant_readers` marks the nodes that
// read constants in the new layout; other readers of a constant keep reading the original.
PlanWithLayouts apply_layouts(const Graph& graph, const FusionPlan& plan, std::span<const ValueLayout> values,
                              const std::vector<std::uint8_t>& constant_readers);

}  // namespace fusec
