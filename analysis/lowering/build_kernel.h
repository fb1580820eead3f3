// The expressions of one kernel: the formulas of a unit's values with those of what they read put into them, until what
// is loaded is in memory.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "analysis/lowering/kernel_unit.h"
#include "ir/graph.h"

namespace fusec {

struct BuiltKernel {
  Kernel kernel;
  std::map<ExprId, ValueId> reduction_of;  // the reductions of contractions: of which value's formula
  std::map<ValueId, std::size_t> copies;   // how often each value's formula stands in it, at different indices
  ValueId over_duplicated = kNone;         // a value with which it grew beyond all limits: then there is no kernel
};

// The group's nodes in topological order. With `round_intermediates` every value that is put into another is rounded to
// its declared dtype.
BuiltKernel build_kernel(const Graph& graph, const std::vector<NodeId>& nodes, const Inlining& inlining,
                         const KernelUnit& unit, bool round_intermediates);

}  // namespace fusec
