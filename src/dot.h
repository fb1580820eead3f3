// Draws the fused graph with Graphviz. Each group is a box with its nodes, kernel, bytes and predicted time, and edges
// connect groups. Weights are text in a box, prepared groups are one box, and repeated layers are one frame with a
// count.
#pragma once

#include <string>

#include "picture.h"

namespace fusec {

// Graphviz text.
std::string to_dot(const Picture& picture);

// Throws Error(kEnvironment) if Graphviz is missing or does not work.
void require_graphviz();

// Runs the `dot` program of Graphviz. Throws Error(kEnvironment) if it is missing or fails.
std::string to_svg(const std::string& dot_text);

}  // namespace fusec
