// The fused graph as a picture: a box for each group, its nodes inside coloured by pattern kind.
#pragma once

#include <span>
#include <string>

#include "ir/fusion_plan.h"

namespace fusec {

// Graphviz text.
std::string to_dot(const Graph& graph, const FusionPlan& plan, std::span<const OpPattern> kinds);

// Throws Error(kEnvironment) where there is no working Graphviz.
void require_graphviz();

// Laid out by Graphviz' `dot` program; throws as require_graphviz does.
std::string to_svg(const std::string& dot_text);

}  // namespace fusec
