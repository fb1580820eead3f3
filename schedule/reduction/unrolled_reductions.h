// Reductions of few elements, written out: a kernel of nothing else is pointwise, and reads its neighbours in vectors.
//
//   max over u, v < 2 of x[2 i + u, 2 j + v]
//   ->  max(max(max(x[2 i, 2 j], x[2 i, 2 j + 1]), x[2 i + 1, 2 j]), x[2 i + 1, 2 j + 1])
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"

namespace fusec {

// Element by element, in the order of loops. Nothing where there are no reductions, where one is of another, or looks
// for a place, or where all are of more than `most` elements together.
std::optional<Kernel> with_reductions_unrolled(const Kernel& kernel, std::int64_t most);

// The same where that is as few accesses as there can be: what a thread's neighbouring results are made of are vectors
// as they lie in memory, each of which one thread alone reads.
std::optional<Kernel> find_unrolled_reductions(const Kernel& kernel, const Graph& graph);

}  // namespace fusec
