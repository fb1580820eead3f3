// Which nodes each line of a kernel's text belongs to. The emitted source itself tells: its comment defines every node
// (`// h = mul(act, up)`), and variables are called after the values that they hold (`h`, `h_v`, `h_2`).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/fusion_plan.h"

namespace fusec {

// For each line the places in `group.nodes`, ascending. A line that assigns belongs to what it assigns, another one to
// all that it names.
std::vector<std::vector<std::uint32_t>> nodes_of_lines(const Graph& graph, const FusionGroup& group,
                                                       std::string_view text);

}  // namespace fusec
