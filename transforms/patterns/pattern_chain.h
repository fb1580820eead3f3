// Finds the nodes and the possible beginnings of a chain: the elementwise nodes that lead to a given node.
//
//   chain(linear(x, w))        g = linear(x, w)
//                              s = sigmoid(g)
//                              h = mul(g, s)       at h: nodes {h, s}, beginning g
#pragma once

#include <vector>

#include "transforms/patterns/pattern.h"

namespace fusec {

struct PatternChain {
  std::vector<NodeId> nodes;    // at most kLongestChain, nearest to the end first
  std::vector<ValueId> begins;  // a few values that the chain may begin with, nearest first; possibly repeated
};

// The chain that ends with the node `end`, which a chain must be allowed to include. `begin` matches its beginnings.
PatternChain find_chain(const SearchedGraph& searched, const PatternTerm& begin, NodeId end);

// The nodes of a sorted list that depend on the value `begin`.
std::vector<NodeId> nodes_after(const Graph& graph, const std::vector<NodeId>& nodes, ValueId begin);

}  // namespace fusec
