// Canonicalization, before patterns and partition under `full`: what computes nothing, or the same thing again, goes.
// remove_dead, fold_constants and simplify_algebra are its passes (src/passes.cpp has them in order). Between them
// stands the graph, and what became of the nodes of the file:
//
//   a = permute(x)         graph: b = permute(x)        stands_for: {a, b}
//   b = permute(a)                                      dropped, folded: none
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "transforms/origins.h"

namespace fusec {

// Every node of the file stands in exactly one of the three lists.
struct CanonicalGraph {
  Graph graph;
  Origins stands_for;                // by node of `graph`: the file's nodes whose work it does
  std::vector<std::string> dropped;  // those that no output needs
  std::vector<std::string> folded;   // those whose values are constants, known now
  // Of a node that went, or that was looked through (a permute before a permute): the node that does its work as well,
  // should nobody read it any more.
  std::vector<NodeId> heirs;  // by node, kNone for none; or empty
};

// Of the graph that the file gives: each node stands for itself.
Origins as_given(const Graph& graph);

// What a pass made of a node: a node of the new graph that does its work, or one of these.
inline constexpr NodeId kDropped = kNone;
inline constexpr NodeId kFolded = kNone - 1;

// The graph has changed; `fates` is by node of the graph as it was.
void note_fates(CanonicalGraph& canonical, const std::vector<NodeId>& fates);

}  // namespace fusec
