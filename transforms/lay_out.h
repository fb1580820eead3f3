// A graph and its plan with some values kept in memory with their channels last.
//
//   before   group 1 {y = conv2d(x, w), z = relu(y)}          group 2 {p = conv2d(z, v)}
//   after    group 0, prepared {v_last = permute(v)}
//            group 1 {y, z, z_last = permute(z)}              group 2 {z_first = permute(z_last), v_first, p}
//
// What lies between the groups is z_last then; z and z_first stand inside of kernels, where permutations are index
// arithmetic. No group is added to what is launched: constants are laid out in M_prepare.
#pragma once

#include <span>
#include <vector>

#include "ir/fusion_plan.h"
#include "ir/graph.h"

namespace fusec {

struct LaidOut {
  Graph graph;
  FusionPlan plan;  // groups as before, at the same places; behind them those that prepare weights
};

// A value whose dimension `channels` is to lie last: 1 of an image, a later one of weights that have leading ones.
struct ValueLayout {
  ValueId value;
  std::size_t channels;
};

// The dimension goes to the end: batch, space, channels; and back.
std::vector<std::int64_t> channels_last(std::size_t rank, std::size_t channels);
std::vector<std::int64_t> channels_first(std::size_t rank, std::size_t channels);

// The groups that compute a node, the first of them first.
class GroupsOfNodes {
 public:
  GroupsOfNodes(const Graph& graph, const FusionPlan& plan);
  std::vector<GroupId> of(NodeId n) const;

 private:
  const FusionPlan& plan_;
  std::vector<std::uint32_t> begin_;  // in FusionPlan::recomputed, ordered by node
  std::vector<Recomputed> recomputed_;
};

// `values`: constants, and results that one group computes and others read. Of a constant only those readers that
// `constant_readers` marks take it as it is laid out.
LaidOut lay_out(const Graph& graph, const FusionPlan& plan, std::span<const ValueLayout> values,
                const std::vector<std::uint8_t>& constant_readers);

}  // namespace fusec
