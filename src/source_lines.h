// Finds the nodes that each line of a kernel's source belongs to. The source has a comment for every node
// (`// h = mul(act, up)`), and names variables after the values that they hold (`h`, `h_v`, `h_2`).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/fusion_plan.h"

namespace fusec {

// By line: indices into `group.nodes`, ascending. An assignment belongs to the node that it assigns, any other line to
// all nodes that it names.
std::vector<std::vector<std::uint32_t>> nodes_of_lines(const Graph& graph, const FusionGroup& group,
                                                       std::string_view text);

}  // namespace fusec
