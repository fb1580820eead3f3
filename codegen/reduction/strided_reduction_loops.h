// Where a team's rows lie, whose elements take turns in memory, and the loops over these elements
// (strided_reduction_emitter says what they do): memory's vectors one after the other, with those that reach over an
// end element by element, or those of a strip of lines.
//
//   for (int v = first + thread; v < last; v += 256) {  // one for each of the team's threads
//     const Words<4> x_w = load_words<4>(x + v * 4);    // or what an earlier loop has kept in registers
//     for (int e = 0; e < 4; ++e) ...                   // Visit::element, of row (phase + e) % columns
//   }
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "codegen/expr/kernel_writer.h"
#include "codegen/reduction/register_resident_row.h"
#include "codegen/reduction/strided_reduction_kernel.h"

namespace fusec {

class StridedReductionLoops {
 public:
  StridedReductionLoops(const StridedReductionKernel& part, KernelWriter& writer, ExprEmitter& emitter);

  // This team's rows, where the vectors of memory lie in them, and of which row the thread's first element is.
  void open(const IndexExpr& groups);

  // What a loop does for an element: `lane` is its place in the vector, `at` where it lies if that reaches over an end,
  // else "".
  struct Visit {
    std::function<void(const std::string& lane, const std::string& at)> element;
    std::function<void(const std::string& place)> before = [](const auto&) {};  // where the vector lies
    std::function<void()> after = [] {};
    std::function<void()> after_vectors = [] {};  // the last vector, before the elements at the ends
  };
  void over_elements(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots, const Visit& visit);

  // Which threads have vectors; "" where all have.
  std::string idle() const;

  // Reductions whose results there are: loops find them in `slots`.
  struct Done {
    ExprEmitter::Accumulator own;  // the result of the row that this thread stores
    std::string slots = "";        // an array of those of its places, where loops ask for them
    std::string function = "";     // of them, in place of themselves
  };
  std::map<ExprId, Done>& done() { return done_; }
  void define_results(const std::string& lane);  // those of a place

  // The row of an element of a line.
  std::string row_at(const std::string& column) const;
  std::string column_of_place(const std::string& place) const;
  // The row of what a thread has at a place, or, where each has one (""), of that.
  std::string row_of_place(const std::string& place) const;
  // How many elements a chunk has of the row of what a thread has at a place, or of its only one.
  std::string elements_of_chunk(const std::string& chunk, const std::string& place);

  // Names of variables: this thread in its team, its block among those of its rows, and the team's rows; of which row
  // the first vector's first element is, and this thread's; the cohort's counters.
  const std::string& thread() const { return thread_; }
  const std::string& chunk() const { return chunk_; }
  const std::string& chunks() const { return chunks_; }  // how many these are
  const std::string& group() const { return group_; }
  const std::string& begins() const { return begins_; }
  const std::string& phase() const { return phase_; }
  // Of lines that begin anywhere: from which to before which place a thread's vectors lie in its strip.
  std::string inside() const;
  const std::string& arrived() const { return arrived_; }
  bool whole_strips() const { return whole_strips_; }
  bool aligned() const { return aligned_; }

 private:
  void find_strip();
  int at_once() const;
  void bind_element(const std::vector<std::uint32_t>& axes, const std::string& at, const std::string& lane);
  std::vector<ExprId> made_of_reductions(const std::vector<std::uint32_t>& axes,
                                         const std::vector<ExprId>& roots) const;
  void make_of_reductions(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots);
  void vector_loop(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots, const Visit& visit);
  std::string within_all_iterations(const std::string& iteration) const;
  std::vector<ExprId> loads_of(const std::vector<ExprId>& roots) const;
  std::map<ExprId, std::string> words_of_broadcasts(const std::vector<ExprId>& roots);
  std::string words_of_places(ExprId load);
  std::string words_at(ExprId load, const std::string& place);
  void edges(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& loads, const Visit& visit);

  const RowForm& form_;
  const ExprPool& pool_;
  const StridedReduction& plan_;
  const StridedReductionKernel& kernel_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  std::string thread_, chunk_, group_;  // in its team; of its rows' blocks; the team's rows
  std::string chunks_;                  // its rows' blocks
  std::string start_, stop_;            // of the rows' elements in memory
  std::string first_, last_;            // of the whole vectors there
  std::string all_;                     // elements of all rows
  std::string begins_, phase_;          // of which row the first vector's first element is, and this thread's
  std::string idle_;                    // "" where every thread has a vector of the strip
  std::string arrived_;                 // cohorts: their counters
  bool whole_strips_ = true;
  bool aligned_ = false, whole_ = false;           // no vector reaches over the beginning; over any end
  std::map<ExprId, std::string> broadcast_words_;  // words of what is the same for all lines, in a loop
  std::map<ExprId, std::string> of_places_;        // arrays of what is made of reductions, while a loop is printed
  std::map<ExprId, Done> done_;
  std::map<ValueId, std::string> register_arrays_;  // arrays of words; "" before they are declared
  std::set<ValueId> filled_;
  RegisterResidentRow values_;
};

}  // namespace fusec
