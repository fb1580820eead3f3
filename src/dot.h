// The fused graph as a picture on paper: a box for each group with its nodes, kernel, bytes and predicted time; edges
// between groups alone. Weights are text; what is prepared once is one box; repeated layers are one frame with a count.
#pragma once

#include <string>

#include "picture.h"

namespace fusec {

// Graphviz text.
std::string to_dot(const Picture& picture);

// Throws Error(kEnvironment) where there is no working Graphviz.
void require_graphviz();

// Laid out by Graphviz' `dot` program; throws as require_graphviz does.
std::string to_svg(const std::string& dot_text);

}  // namespace fusec
