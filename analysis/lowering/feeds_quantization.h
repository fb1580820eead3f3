// What is quantized, compared or rounded to whole numbers, in another kernel than that which makes it. A value of 16
// bits on the way there is rounded by whoever stores it; one that is made wider again before it is stored must be
// rounded first, or one code in some hundred would be another than the graph says (analysis/lowering/build_kernel does
// that within a kernel).
//
//     norm: bfloat16 ──▶ cast: float32 ──▶ (stored) ──▶ div ──▶ round          cast leads to codes, and norm is rounded
#pragma once

#include "ir/graph.h"

namespace fusec {

// Sets Node::feeds_quantization: of nodes from which a way leads to what makes codes through floats of more than 16
// bits alone.
void mark_feeds_quantization(Graph& graph);

// Makes of floats what no tolerance forgives when it is another: codes, whole numbers, comparisons, the place of the
// greatest (of values that are rounded to one number, the first).
bool quantizes(const Graph& graph, const Node& node);

}  // namespace fusec
