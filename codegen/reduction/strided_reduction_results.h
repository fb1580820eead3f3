// Emits the results of a strided reduction (strided_reduction_emitter). A group's threads combine the results of their
// lanes. Blocks that share rows store partial results in scratch memory. The kernel of the next stage combines these,
// or the co-resident blocks do so after a barrier.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "codegen/expr/kernel_writer.h"
#include "codegen/reduction/row_partials.h"
#include "codegen/reduction/strided_reduction_kernel.h"
#include "codegen/reduction/strided_reduction_loops.h"

namespace fusec {

class StridedReductionResults {
 public:
  StridedReductionResults(const StridedReductionKernel& part, StridedReductionLoops& elements, KernelWriter& writer,
                          ExprEmitter& emitter)
      : form_(part.plan.form),
        pool_(form_.kernel.pool),
        plan_(part.plan),
        kernel_(part),
        elements_(elements),
        writer_(writer),
        emitter_(emitter) {}

  // Reduces accumulator `a` over the group's threads. `all`: each lane gets its row's result too, not only the thread
  // that stores the row.
  void join(const ExprEmitter::Accumulator& a, const std::string& mine, int parts, int width, bool all);
  // Reduces one-pass accumulators over the group's threads, for each of `width` lanes. `lane`: those of lane `e`.
  void join_pass(const PassResults& lane, int parts, int width);

  // The C type of the one-pass accumulator.
  std::string type_of_pass() const;
  std::string scaled_count(const std::string& count) const;  // divisor that makes a sum of the pass a mean

  // Stores partial results: of these reductions, or of all of this stage.
  void store_partials(const std::vector<ExprId>& reductions);
  void store_partials();
  // Co-resident blocks: waits until each block of the rows has stored its results.
  void wait_for_blocks();

  // Combines the chunks' partial results of a reduction for the rows of this group.
  void combine_partials(ExprId reduction);
  // Combines the chunks' maxima and sums of exponentials below them, or their sums and squared deviations from each
  // chunk's mean. The latter is relative to the first chunk's mean, which keeps precision for means far from 0.
  void combine_pass();

 private:
  void join_lines(const ExprEmitter::Accumulator& a, const std::string& mine);
  std::string results_of_rows(const ExprEmitter::Accumulator& a);
  bool are_lines_of_warps() const;
  std::string reduced_sequentially(const ExprEmitter::Accumulator& a, const std::string& mine,
                                   const std::string& places, int parts, int width, bool all);
  std::string reduced_strip(const ExprEmitter::Accumulator& a, const std::string& mine, const std::string& places,
                            int count);
  std::string partials(const ExprEmitter::Accumulator& a);
  void over_partials(const std::function<void(const std::string& at, const std::string& chunk)>& take);
  int combining() const;
  std::string partials_of_rows() const;

  const RowForm& form_;
  const ExprPool& pool_;
  const StridedReduction& plan_;
  const StridedReductionKernel& kernel_;
  StridedReductionLoops& elements_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  int strip_reductions_ = 0;  // calls that need their own shared memory
  int barriers_ = 0;          // barriers among co-resident blocks so far
  std::map<ExprId, std::string> partials_;
};

}  // namespace fusec
