// Finds the layout of gate and up of a gated unit, for the attributes of its group. The pattern language cannot express
// it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "transforms/patterns/pattern.h"

namespace fusec {

// If the matched `gate` and `up` are pieces of one value: swapped = true if up comes first, interleaved = true if they
// alternate. If the match holds a gated op (swiglu ...): that op's attributes.
std::vector<std::pair<std::string, std::string>> gated_layout(const PatternCheckContext& context);

}  // namespace fusec
