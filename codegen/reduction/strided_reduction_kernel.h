// One kernel of a strided reduction (strided_reduction_emitter): its outputs and reductions, the operands of its loops,
// the values that a thread keeps, and the registers that it needs.
#pragma once

#include <set>
#include <vector>

#include "codegen/reduction/row_registers.h"
#include "ir/graph.h"
#include "schedule/reduction/strided_reduction.h"

namespace fusec {

struct StridedReductionKernel {
  const StridedReduction& plan;
  std::vector<ReductionLoop> loops;
  int stage;
  bool outputs;  // computes the form's outputs
  // What is kept between loops with known trip counts. Aligned strips keep computed values if registers suffice,
  // otherwise loads in their storage type.
  RowRegisters registers = {};
  int register_vectors = 0;

  // A loop over elements, with vectors as iterations.
  RowLoop loop_over(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots) const;
  // The outputs with one element per row (`row`), or those with one per column.
  RowOutputs outputs_of(bool row) const { return fusec::outputs_of(plan.form, row); }
  // The extra outputs that this kernel's first loop stores.
  RowOutputs own_extra_outputs() const;
  // The expressions that the loop computes, including these outputs.
  std::vector<ExprId> roots_of_loop(const ReductionLoop& loop) const;
  // True if a block takes a chunk. False if the kernel only combines partial results.
  bool chunked() const { return plan.chunks > 1 && (plan.resident_blocks || !outputs || !outputs_of(false).empty()); }
  // Blocks that share the rows of one group. If the number of lines is known only at launch, an expression; at most
  // `plan.chunks`, its value at the hints.
  IndexExpr chunks() const;
  // True if a later loop reads the reduction's result for each element.
  bool is_read_per_element(ExprId reduction) const;
  // True if only the first loop reads the operands.
  bool reads_once() const;
  int words_of(ExprId load) const;  // 32-bit words per vector

  // Minimum of resident blocks per multiprocessor for __launch_bounds__; 0: none. It is one if two blocks would have
  // too few registers, and a few if nothing is kept; otherwise ptxas would spill to fit more blocks.
  int blocks_at_once() const;
};

StridedReductionKernel strided_reduction_kernel(const Graph& graph, const StridedReduction& plan, int stage);

}  // namespace fusec
