// The partitioner: which vertices of a forward graph share a kernel. TVM Relax FuseOps, group for group.
//
//     matmul ──▶ bias ──▶ relu ──▶ reshape        {matmul, bias, relu} {reshape}
//
// For each vertex in order, in three phases, the rules (analysis/fusion_rules) are asked whether it may join its
// immediate post-dominator; if so, everything on the ways between joins with it. This file only walks and merges.
//
// What keeps it linear: a count that exceeds the limit needs no more than `max_fused_ops` steps to do so; how many
// vertices lie at least between a vertex and its post-dominator is known beforehand from one backward pass, so that in
// wide graphs whose branches meet far away nearly every question is answered without a walk; and an answer "too many
// nodes" never changes, since counts only grow.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/forward_graph.h"
#include "analysis/fusion_rules.h"
#include "analysis/post_dominators.h"

namespace fusec {

struct ArgumentTable;

struct PartitionOptions {
  std::uint32_t max_fused_ops = 256;
  std::uint32_t max_args = 0;                             // distinct values read and written; 0: no limit
  const ArgumentTable* arguments = nullptr;               // needed where max_args is set
  const LargeVector<std::uint8_t>* kept_apart = nullptr;  // 1: the vertex was made opaque on the user's demand
  const LargeVector<std::uint32_t>* weight = nullptr;     // the nodes that each vertex stands for; empty: one each
};

// Why a vertex is, or is not, in the group of its post-dominator.
struct VertexDecision {
  FusionRule rule = FusionRule::kUndecided;
  std::uint8_t phase = 0;
  Vertex blocker = kNoVertex;  // the vertex that blocks; of kJoined: the one whose question brought it in, if another
};

struct Partition {
  LargeVector<Vertex> root;               // of each vertex: the last vertex of its group
  LargeVector<OpPattern> pattern;         // of each root: the group's kind
  LargeVector<Vertex> anchor;             // of each root: the complex op in the group, or kNoVertex
  LargeVector<VertexDecision> decisions;  // of each vertex
};

Partition partition(const ForwardGraph& graph, const PostDominators& post_dominators, const PartitionOptions& options);

// How many vertices lie on the ways from each vertex (counted) to its parent (not counted), or `cap` where they are as
// many or more. At least: where they are certainly cap or more this may come from a bound.
LargeVector<std::uint32_t> count_to_parent(const ForwardGraph& graph, const PostDominators& post_dominators,
                                           std::uint32_t cap);

}  // namespace fusec
