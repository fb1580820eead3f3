// Converts a model's graph to the forward graph that fusion works on, with maps between vertices and nodes.
//
//     parts = split(x)             vertices:  parts ──▶ parts.0 ──▶ y
//     y = add(parts.0, parts.1)                  └───▶ parts.1 ──▶┘
//
// A node with several results becomes one vertex, followed by one item vertex per used result. With PatternSource::kTvm
// an item is injective; with kFormula it has its node's kind, but at most injective. A result that is a graph output
// marks its item as external. A node marked "fuse": false becomes opaque.
//
// The nodes of a pattern's claim become one vertex with the greatest of their kinds, or opaque if a library computes
// them. A prepared node (run once before the first launch) is marked external if other nodes read it, and has no edge
// to them.
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
  LargeVector<NodeId> node_of;    // by vertex: its node; for an item the producer, for a claim the claim's last node
  LargeVector<Vertex> vertex_of;  // by node: its vertex, which precedes those of its items
  LargeVector<Vertex> vertex_of_value;  // by value: the vertex that defines it; kNoVertex for leaves and unused values
  LargeVector<std::uint8_t> fusion_disabled;  // by vertex; 1: marked "fuse": false

  // By vertex: the number of nodes it stands for. Empty if every vertex stands for one.
  LargeVector<std::uint32_t> weight;

  bool is_item(Vertex v) const { return vertex_of[node_of[v]] != v; }
  // Returns the first node of the vertex. The nodes of a claim have consecutive ids and end with node_of[v].
  NodeId first_node(Vertex v) const { return weight.empty() || is_item(v) ? node_of[v] : node_of[v] + 1 - weight[v]; }
};

// `kinds` is the pattern of each node. `source` decides the pattern of items. `claims` are sorted by their nodes.
FusionGraph build_fusion_graph(const Graph& graph, std::span<const OpPattern> kinds,
                               PatternSource source = PatternSource::kTvm, std::span<const PatternClaim> claims = {});

// Returns whether a node has item vertices: it has several results, or its op always returns a list (split into one
// piece).
inline bool has_items(const Node& node) {
  return node.output_count > 1 || node.op->several;
}

}  // namespace fusec
