// Unrolls reductions of few elements into expressions. A kernel without other reductions becomes pointwise and can use
// vector loads.
//
//   max over u, v < 2 of x[2 i + u, 2 j + v]
//   ->  max(max(max(x[2 i, 2 j], x[2 i, 2 j + 1]), x[2 i + 1, 2 j]), x[2 i + 1, 2 j + 1])
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"

namespace fusec {

// Combines the elements in loop order. Nothing if the kernel has no reductions, a nested reduction, an argmax or
// argmin, or more than `most` reduced elements in total.
std::optional<Kernel> with_reductions_unrolled(const Kernel& kernel, std::int64_t most);

// Unrolls only if that needs the fewest possible accesses: a thread's neighbouring results read whole vectors of
// contiguous memory, and no two threads read the same vector.
std::optional<Kernel> find_unrolled_reductions(const Kernel& kernel, const Graph& graph);

}  // namespace fusec
