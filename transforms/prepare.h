// Work on constants alone leaves the launch: what is prepared runs once for each set of weights (M_prepare), into
// memory that the launches read.
//
//   c = cast(w)            prepared: a launch then reads c, half of w's bytes
//   y = linear(x, c)
//
//   t = transpose(w)       not prepared: the product reads w where t would have it
//   y = matmul(x, t)
//
// Two passes. Before the partitioner runs, nodes whose results are cheaper to read than to compute where they are read
// (no more bytes, and something is computed; or a kernel of their own is needed) are marked, and fuse with nothing that
// stays. Once groups are known, those of constants alone that would be a launch each run follow. Memory is not spent
// without limit: a result is at most twice as large as the constants that it is made of, or small.
#pragma once

#include "ir/fusion_plan.h"
#include "transforms/canonical_graph.h"

namespace fusec {

void mark_prepared(CanonicalGraph& canonical);
void prepare_groups(const Graph& graph, FusionPlan& plan);

}  // namespace fusec
