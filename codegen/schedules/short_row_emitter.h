// Prints a kernel of short rows that go through shared memory (analysis/short_rows plans it).
#pragma once

#include "analysis/row_form.h"
#include "analysis/short_rows.h"
#include "codegen/kernel_source.h"
#include "ir/graph.h"

namespace fusec {

// `original` is the kernel as lowered, for its name and comment; `wide`: 64-bit indices.
KernelSource emit_short_rows(const RowForm& form, const Graph& graph, const ShortRows& way, bool wide,
                             const Kernel& original);

}  // namespace fusec
