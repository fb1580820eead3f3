// Finds the sliding window of a kernel (schedule/convolution/sliding_window): the axis along which a thread has several
// results, and how many, by what the instructions cost.
#pragma once

#include <optional>

#include "schedule/convolution/sliding_window.h"
#include "schedule/target/target.h"

namespace fusec {

// Nothing if one result per thread needs no more instructions.
std::optional<SlidingWindow> find_sliding_window(const Kernel& kernel, const Graph& graph, const Target& target);

}  // namespace fusec
