// The graph that canonicalization passes hand on, and what became of the file's nodes. Under `full`, the passes
// remove_dead, fold_constants and simplify_algebra run before patterns and partition (src/passes.cpp has the order).
// They remove nodes that compute nothing, or compute a value a second time:
//
//   a = permute(x)         graph: b = permute(x)        stands_for: {a, b}
//   b = permute(a)                                      dropped, folded: none
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "transforms/origins.h"

namespace fusec {

// Every node of the file is in exactly one of `stands_for`, `dropped` and `folded`.
struct CanonicalGraph {
  Graph graph;
  Origins stands_for;                // by node of `graph`: the file's nodes that it replaces
  std::vector<std::string> dropped;  // nodes of the file that no output needs
  std::vector<std::string> folded;   // nodes of the file that became constants
  // By node: the node that takes over its origins if nothing reads it any more, kNone for none. A removed node has one,
  // and so has a node that a rule looked through (the inner permute of two). May be empty.
  std::vector<NodeId> heirs;
};

// Origins in which each node stands for itself.
Origins as_given(const Graph& graph);

// A node's fate under a pass: a node of the new graph that replaces it, or one of these.
inline constexpr NodeId kDropped = kNone;
inline constexpr NodeId kFolded = kNone - 1;

// Updates the lists after the graph changed. `fates` is indexed by node of the graph before the change.
void note_fates(CanonicalGraph& canonical, const std::vector<NodeId>& fates);

}  // namespace fusec
