// How a gated unit's operands lie, as attributes of its group: what text cannot say.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "transforms/patterns/pattern.h"

namespace fusec {

// Of a match that names `gate` and `up`, where both are pieces of one value: swapped = true where up comes first,
// interleaved = true where they alternate. Of a match that holds the op itself (swiglu ...): that op's attributes.
std::vector<std::pair<std::string, std::string>> gated_layout(const PatternCheckContext& context);

}  // namespace fusec
