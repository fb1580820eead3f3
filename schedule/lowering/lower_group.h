// Lowers a group to kernels by substitution. Each value that must be in memory becomes an expression in which formulas
// of the group's other nodes replace loads. Values over one iteration space share a kernel.
//
//   {linear, gelu, mul}, output mul     ->  mul[i, j] = gelu(sum_k x[i, k] * w[j, k]) * y[i, j]       one kernel
//   {softmax, matmul}, output matmul    ->  softmax is stored first: matmul would recompute its rows for every column
//   {linear, linear, concat}, output concat  ->  each linear stores its part of concat, in one launch
//
// analysis/lowering/inlining decides what is stored besides the group's outputs.
#pragma once

#include <vector>

#include "analysis/lowering/lowered_unit.h"
#include "ir/graph.h"

namespace fusec {

struct LoweringMemory;
class FormMemory;

// The nodes in topological order; `outputs` are the values that others need. In an order that can be run. With
// `round_intermediates` every value that is put into another is rounded to its declared dtype. `forms` holds what was
// found out of kernels before, `memory` what was lowered of this graph; both get what is found out now.
std::vector<LoweredUnit> lower_group(const Graph& graph, const std::vector<NodeId>& nodes,
                                     const std::vector<ValueId>& outputs, bool round_intermediates = false,
                                     FormMemory* forms = nullptr, LoweringMemory* memory = nullptr);

// What schedules may do to arithmetic. A form holds kernels that say it as well: where it changes, forms are forgotten.
void set_numerics(std::vector<LoweredUnit>& units, const Numerics& numerics);

}  // namespace fusec
