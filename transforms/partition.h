// The partitioner decides which vertices of a forward graph share a kernel. Its groups are those of TVM Relax FuseOps.
//
//     matmul ──▶ bias ──▶ relu ──▶ reshape        {matmul, bias, relu} {reshape}
//
// In three phases, for each vertex in order, the rules (analysis/fusion_rules.h) decide whether it may join its
// immediate post-dominator. If so, all vertices on paths between the two join as well.
//
// The time is linear in the graph for a fixed limit. Counting a group stops after `max_fused_ops` steps. One backward
// pass bounds the number of vertices between each vertex and its post-dominator, which answers nearly all questions in
// wide graphs without a walk. The answer "too many nodes" is final, because counts only grow.
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
  std::uint32_t max_args = 0;                                  // distinct values read and written; 0: no limit
  const ArgumentTable* arguments = nullptr;                    // required if max_args is set
  const LargeVector<std::uint8_t>* fusion_disabled = nullptr;  // 1: the user excluded the vertex from fusion
  const LargeVector<std::uint32_t>* weight = nullptr;          // by vertex: the number of its nodes; empty: one each
};

// Why a vertex is, or is not, in the group of its post-dominator.
struct VertexDecision {
  FusionRule rule = FusionRule::kUndecided;
  std::uint8_t phase = 0;
  Vertex blocker = kNoVertex;  // the blocking vertex; for kJoined: another vertex whose merge brought this one in
};

struct Partition {
  LargeVector<Vertex> root;               // by vertex: the last vertex of its group
  LargeVector<OpPattern> pattern;         // by root: the group's kind
  LargeVector<Vertex> anchor;             // by root: the complex op in the group, or kNoVertex
  LargeVector<VertexDecision> decisions;  // by vertex
};

Partition partition(const ForwardGraph& graph, const PostDominators& post_dominators, const PartitionOptions& options);

// By vertex: the number of vertices on paths from it (included) to its post-dominator (excluded), at most `cap`.
// Vertices without a post-dominator get `cap`.
LargeVector<std::uint32_t> count_to_parent(const ForwardGraph& graph, const PostDominators& post_dominators,
                                           std::uint32_t cap);

}  // namespace fusec
