// One of the kernels that print rows whose elements take turns in memory (strided_reduction_emitter): which of the
// form's outputs and reductions are its own, what its loops read, what of that a thread keeps, and how many registers
// it needs.
#pragma once

#include <set>
#include <vector>

#include "codegen/reduction/row_registers.h"
#include "ir/graph.h"
#include "schedule/reduction/strided_reduction.h"

namespace fusec {

struct StridedReductionKernel {
  using Outputs = std::vector<const KernelOutput*>;

  const StridedReduction& plan;
  std::vector<ReductionLoop> loops;
  int stage;
  bool outputs;  // the form's are this kernel's
  // Where the loops' turns are known, what several loops need is kept: of even strips values, if registers have room
  // for them, else loads as they lie in memory.
  RowRegisters values = {};
  std::set<ValueId> register_values = {};
  int register_vectors = 0, register_words = 0;

  // A loop over elements, whose vectors are turns.
  RowLoop loop_over(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots) const;
  // Those with an element a row, or those with one an element.
  Outputs outputs_of(bool row) const;
  // Those that this kernel's first loop stores.
  Outputs own_extra_outputs() const;
  // What the loop computes, with these.
  std::vector<ExprId> roots_of_loop(const ReductionLoop& loop) const;
  // Does a block take a chunk? Not where what is left to do is to combine the partial results.
  bool chunked() const { return plan.chunks > 1 && (plan.resident_blocks || !outputs || !outputs_of(false).empty()); }
  // Blocks that share a team's rows: as many as a launch's sizes ask for where only a launch says how many lines there
  // are, at most `way.chunks`, what the expected sizes ask for.
  IndexExpr chunks() const;
  // Some loop behind the reduction's asks for its result at each place.
  bool is_read_per_element(ExprId reduction) const;
  // Is every element read once, by its first loop?
  bool reads_once() const;
  // The loads of elements as they follow one another, a tensor once.
  std::vector<ExprId> loads_of(const std::vector<ExprId>& roots) const;
  int words_of(ExprId load) const;  // of a vector

  // Are there too few registers for what is computed of the words that are kept, beside these?
  bool recomputes() const;
  // One where two have too few registers between them: left alone, ptxas would spill some for the second, and for more
  // than a few where nothing is kept. Else 0.
  int blocks_at_once() const;
};

StridedReductionKernel strided_reduction_kernel(const Graph& graph, const StridedReduction& plan, int stage);

std::vector<ExprId> roots_of_outputs(const StridedReductionKernel::Outputs& outputs);

}  // namespace fusec
