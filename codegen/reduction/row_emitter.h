// Prints a kernel of rows: the loops over a row, the teams of threads that reduce it, what is stored of it.
// schedule/reduction/row_layout decides how; here is the text.
#pragma once

#include "codegen/expr/kernel_source.h"
#include "codegen/reduction/row_vectors.h"
#include "ir/graph.h"
#include "schedule/lowering/cross_row_reduction.h"
#include "schedule/reduction/row_form.h"
#include "schedule/reduction/row_layout.h"

namespace fusec {

struct RowKernel {
  const RowForm& form;
  const Graph& graph;
  RowLayout layout;
  RowSplit split;
  bool wide = false;  // 64-bit indices
  // Where blocks that know nothing of one another share a row (layout.chunks), this kernel leaves the partial results
  // of the reductions that need this many others' in scratch memory; the one after the last of them has the outputs.
  int stage = 0;
  std::int64_t shared_bytes = 48 * 1024;  // that a block may have
  // Of rows that blocks take one after the other: the form's last outputs are folded along the columns.
  const CrossRowReduction* cross_row = nullptr;
};

// Whether threads keep what they need of a row, and of its columns, in registers.
bool keeps_in_registers(const RowKernel& kernel);

// `original` is the kernel as lowered, for its name and comment.
KernelSource emit_rows(const RowKernel& kernel, const Kernel& original);

}  // namespace fusec
