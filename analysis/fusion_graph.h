// A model's graph as the forward graph that fusion works on, and the way back.
//
//     parts = split(x)             vertices:  parts ──▶ parts.0 ──▶ y
//     y = add(parts.0, parts.1)                  └───▶ parts.1 ──▶┘
//
// A node with several results is a vertex and one item for every result in use, right behind it. To TVM an item is
// injective; by its formula it reads where its node writes, so it is elementwise or broadcast where its node is. A
// result that is a graph output marks its item. Nodes that the user keeps apart ("fuse": false) become opaque. The
// nodes of a pattern's claim are one vertex, of the greatest of their kinds; a library's are opaque together.
// What is prepared is stored for those that are not, and has no edge to them.
#pragma once

#include <span>
#include <vector>

#include "analysis/annotate.h"
#include "analysis/forward_graph.h"
#include "ir/fusion_plan.h"
#include "ir/graph.h"

namespace fusec {

struct FusionGraph {
  ForwardGraph forward;
  LargeVector<NodeId> node_of;           // of each vertex; an item's is its producer, a claim's its last node
  LargeVector<Vertex> vertex_of;         // of each node: the node itself, its items follow
  LargeVector<Vertex> vertex_of_value;   // of each value: its definer or item; kNoVertex: a leaf or without use
  LargeVector<std::uint8_t> kept_apart;  // of each vertex

  // Of each vertex: how many nodes it stands for; empty: one each.
  LargeVector<std::uint32_t> weight;

  bool is_item(Vertex v) const { return vertex_of[node_of[v]] != v; }
  // The first of the vertex's nodes, which stand side by side up to node_of.
  NodeId first_node(Vertex v) const { return weight.empty() || is_item(v) ? node_of[v] : node_of[v] + 1 - weight[v]; }
};

// `kinds` has the pattern of each node, `source` says where the items take theirs from.
FusionGraph build_fusion_graph(const Graph& graph, std::span<const OpPattern> kinds,
                               PatternSource source = PatternSource::kTvm, std::span<const PatternClaim> claims = {});

// Whether a node's results are taken apart by items: several, or always counted (split into one piece).
inline bool has_items(const Node& node) {
  return node.output_count > 1 || node.op->several;
}

}  // namespace fusec
