#pragma once

#include "codegen/expr/kernel_source.h"
#include "ir/graph.h"
#include "schedule/movement/staged_copy.h"

namespace fusec {

// A kernel that copies its operands' rows to shared memory and stores its results from there.
KernelSource emit_staged_copy(const StagedCopy& plan, const Graph& graph);

}  // namespace fusec
