// Writes a graph as a model file: read_model_text(model_text(g)) equals g.
#pragma once

#include <string>

#include "ir/graph.h"

namespace fusec {

// One element per line; nodes in the graph's order. Output types are declared if the op's row does not tell them
// (custom ops, collectives), or for all nodes with `declare_types`.
std::string model_text(const Graph& graph, bool declare_types = false);

// The name of result `index` if the file gives none.
std::string default_result_name(const Node& node, std::uint32_t index);

}  // namespace fusec
