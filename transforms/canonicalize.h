// Canonicalization, before patterns and partition under `full`: what computes nothing, or the same thing again, goes.
//
//   remove-dead         nodes whose results no output needs
//   remove-identities   a = identity(x), cast to x's own dtype, reshape to x's own shape, x*1, x+0 of integers: users
//   take x merge-duplicates    c = add(x, y), d = add(x, y): users of d take c
//
// Nodes are taken by depth from the outputs, operands first: the order of the result follows from the wiring alone, not
// from where a node stands in the file, and with it every later choice between equals.
//
// Kept: a node that is an output under its own name, an op that is not deterministic, custom launchers and collectives,
// and nodes with "fuse": false, whose results somebody wants to see.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace fusec {

// A graph and what became of the nodes of the file it stands for.
struct CanonicalGraph {
  Graph graph;
  std::vector<std::vector<std::string>> stands_for;  // by node of `graph`: the file's nodes whose values it computes
  std::vector<std::string> dropped;                  // the file's nodes that no output needs, in order
};

CanonicalGraph canonicalize(const Graph& graph);

}  // namespace fusec
