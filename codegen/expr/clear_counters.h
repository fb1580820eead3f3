// The kernel of one block that sets counters to 0, before the kernels whose blocks count with them.
#pragma once

#include <cstdint>

#include "codegen/expr/kernel_source.h"
#include "ir/bounds.h"
#include "ir/graph.h"

namespace fusec {

KernelSource clear_counters(const IndexExpr& count, std::uint32_t scratch, const Bounds& bounds, const Graph& graph,
                            bool wide);

}  // namespace fusec
