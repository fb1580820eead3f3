// Emits a row kernel: the loops over a row, the reduction among its threads, and the stores.
// schedule/reduction/row_layout decides the mapping.
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
  // If independent blocks share a row (layout.chunks), kernel `stage` stores the partial results of the reductions that
  // depend on `stage` others. The kernel after the last of these computes the outputs.
  int stage = 0;
  std::int64_t shared_bytes = 48 * 1024;  // shared memory limit per block
  // Set if blocks take rows one after the other: the form's last outputs are reduced along the columns.
  const CrossRowReduction* cross_row = nullptr;
};

// True if threads keep their part of a row, and of its columns, in registers.
bool keeps_in_registers(const RowKernel& kernel);

// `original` is the kernel as lowered, for its name and comment.
KernelSource emit_rows(const RowKernel& kernel, const Kernel& original);

}  // namespace fusec
