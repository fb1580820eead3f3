// Results of rows whose elements take turns in memory (strided_reduction_emitter): a team's threads join what each has
// found at its places, and blocks that share rows leave theirs in scratch memory, where the kernel of the next stage,
// or the blocks themselves once they have met, combine them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "codegen/expr/kernel_writer.h"
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

  // The team's results of what its threads have: in the accumulator's own name, and at each place where all ask.
  void join(const ExprEmitter::Accumulator& a, const std::string& mine, int parts, int width, bool all);
  // The team's, of what threads have at place `e` of each of their places: the greatest, the sum below `shift`, and
  // that.
  void join_exponentials(const std::string& greatest, const std::string& sum, const std::string& shift, int parts,
                         int width);
  // The team's sums, and the squares of differences to their means, of what threads have at each of their places, where
  // means are counted from `about`.
  void join_moments(const std::string& moments, int parts, int width, const std::string& about = "");

  // The C type of what one pass over the elements finds.
  std::string type_of_pass() const;
  std::string scaled_count(const std::string& count) const;  // what a sum of the pass is divided by for a mean

  // For others, of these reductions or of all of this stage's.
  void store_partials(const std::vector<ExprId>& reductions);
  void store_partials();
  // Blocks that wait for one another: until each of the rows' has left its own.
  void wait_for_blocks();

  // What the chunks have left, number i of row i % rows, and of the rows as this team counts them.
  void combine_partials(ExprId reduction);
  // As combine_partials, of chunks' greatest elements and the sums below those.
  void combine_exponentials();
  // As combine_partials, of chunks' sums and the squares of differences to the means of each. What follows of those is
  // counted from the first one, so that little is lost where means are far from 0.
  void combine_moments();

 private:
  void join_lines(const ExprEmitter::Accumulator& a, const std::string& mine);
  std::string results_of_rows(const ExprEmitter::Accumulator& a);
  bool are_lines_of_warps() const;
  std::string reduced_sequentially(const ExprEmitter::Accumulator& a, const std::string& mine,
                                   const std::string& places, int parts, int width, bool all);
  std::string reduced_strip(const ExprEmitter::Accumulator& a, const std::string& mine, const std::string& places,
                            int count);
  std::string partials(const ExprEmitter::Accumulator& a);
  void store_partial(const std::string& pointer, const std::string& row, const std::string& value);
  bool is_stored_from_places(ExprId reduction) const;
  void store_partials_of_places(const StridedReductionLoops::Done& done);
  int combining() const;
  std::string partials_of_rows() const;

  const RowForm& form_;
  const ExprPool& pool_;
  const StridedReduction& plan_;
  const StridedReductionKernel& kernel_;
  StridedReductionLoops& elements_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  int pieces_reduced_ = 0;  // calls with memory of their own
  int barriers_ = 0;        // how often its blocks have met
  std::map<ExprId, std::string> partials_;
};

}  // namespace fusec
