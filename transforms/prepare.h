// Moves work on constants from the launch into M_prepare, which runs once for each set of weights and stores results
// that the launches read.
//
//   c = cast(w)            prepared: a launch then reads c, half of w's bytes
//   y = linear(x, c)
//
//   t = transpose(w)       not prepared: the product reads w with transposed strides
//   y = matmul(x, t)
//
// There are two passes. mark_prepared runs before the partitioner. It marks nodes whose results are cheaper to load
// than to recompute in their reader: they need a kernel of their own, or they compute something and have no more bytes
// than their operands. Marked nodes do not fuse with nodes of the launch. prepare_groups runs on a plan and adds groups
// of constant nodes that would be launches. A result may have twice the bytes of the constants it is made of, or
// 16 MiB; there is a limit for all results, too.
#pragma once

#include "ir/fusion_plan.h"
#include "transforms/canonical_graph.h"

namespace fusec {

void mark_prepared(CanonicalGraph& canonical);
void prepare_groups(const Graph& graph, FusionPlan& plan);

}  // namespace fusec
