// A graph as a model file: read_model_text(model_text(g)) is g again.
#pragma once

#include <string>

#include "ir/graph.h"

namespace fusec {

// One element a line; the nodes in the graph's order. Outputs are declared with their types where the op's row alone
// cannot tell them (custom ops, collectives), or everywhere with `declare_types`.
std::string model_text(const Graph& graph, bool declare_types = false);

// The name under which result `index` goes when the file gives none.
std::string default_result_name(const Node& node, std::uint32_t index);

}  // namespace fusec
