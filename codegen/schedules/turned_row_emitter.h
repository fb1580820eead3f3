// Prints a kernel of rows that lie across memory in some tensors and along it in others (analysis/turned_rows plans
// it).
#pragma once

#include "analysis/turned_rows.h"
#include "codegen/kernel_source.h"

namespace fusec {

// `original` is the kernel as lowered, for its name and comment; `wide`: 64-bit indices.
KernelSource emit_turned_rows(const Graph& graph, const TurnedRows& way, bool wide, const Kernel& original);

}  // namespace fusec
