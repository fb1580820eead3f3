// Checks everything that a pass could break in a graph.
#pragma once

#include <string>

#include "ir/graph.h"

namespace fusec {

// The first problem as a sentence, "" where there is none: ids in range, producers and results consistent, unique
// names, topological order, attributes that the op knows, types that agree with inference, outputs, aliases that an
// order of execution allows, symbols that an input determines.
std::string first_problem(const Graph& graph);

// Throws InternalError, naming the pass, where the graph has a problem.
void verify(const Graph& graph, const std::string& pass);

}  // namespace fusec
