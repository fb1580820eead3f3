// Checks all invariants of a graph that a pass could break.
#pragma once

#include <string>

#include "ir/graph.h"

namespace fusec {

// The first problem as a sentence, "" without one. Checks that ids are in range, producers and results are consistent,
// names are unique, nodes are in topological order, ops know their attributes, types agree with inference, outputs
// exist, an execution order serves all aliases, and inputs determine all symbols.
std::string first_problem(const Graph& graph);

// Throws InternalError that names the pass if the graph has a problem.
void verify(const Graph& graph, const std::string& pass);

}  // namespace fusec
