// Emits the loops of a strided reduction (strided_reduction_emitter). A group's threads take the vectors of its lines
// in memory order, and vectors across a boundary element by element; or they take the vectors of a strip of lines.
//
//   for (int v = first + thread; v < last; v += 256) {  // one for each of the group's threads
//     const Words<4> x_w = load_words<4>(x + v * 4);    // or the registers that an earlier loop filled
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

  // Declares this group's rows, the range of whole vectors in them, and the row of the thread's first element.
  void open(const IndexExpr& groups);

  // Callbacks of a loop. `lane` is the element's index in the vector. `at` is its position if the vector crosses a
  // boundary, else "".
  struct Visit {
    std::function<void(const std::string& lane, const std::string& at)> element;
    std::function<void(const std::string& place)> before = [](const auto&) {};  // `place`: position of the vector
    std::function<void()> after = [] {};
    std::function<void()> after_vectors = [] {};  // after the last vector, before the edge elements
  };
  void over_elements(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots, const Visit& visit);

  // The condition that a thread has vectors; "" if all have.
  std::string idle() const;

  // A finished reduction. Loops find its results in `slots`.
  struct Done {
    ExprEmitter::Accumulator own;  // the result of the row that this thread stores
    std::string slots = "";        // array of the results of the thread's lanes, if loops read them
  };
  std::map<ExprId, Done>& done() { return done_; }
  void define_results(const std::string& lane);  // defines the results of one lane

  // The row of an element, from its column in a line.
  std::string row_at(const std::string& column) const;
  std::string column_at_lane(const std::string& place) const;
  // The row of the thread's element at a lane; for "" the row of its only element.
  std::string row_at_lane(const std::string& place) const;
  // How many elements of that row (lane `place`, or the only row) a chunk has.
  std::string elements_of_chunk(const std::string& chunk, const std::string& place);

  // Names of variables: this thread in its group, its block among those that share the rows, the group's rows, the row
  // of the first vector's first element and of this thread's first element, the counters of co-resident blocks.
  const std::string& thread() const { return thread_; }
  const std::string& chunk() const { return chunk_; }
  const std::string& chunks() const { return chunks_; }  // number of blocks that share the rows
  const std::string& group() const { return group_; }
  const std::string& first_row() const { return first_row_; }
  const std::string& phase() const { return phase_; }
  // Unaligned lines: the range of a thread's vector lanes that are inside its strip.
  std::string inside() const;
  const std::string& arrived() const { return arrived_; }
  bool whole_strips() const { return whole_strips_; }
  bool aligned() const { return aligned_; }

 private:
  void find_strip();
  int at_once() const;
  void bind_element(const std::vector<std::uint32_t>& axes, const std::string& at, const std::string& lane);
  std::vector<ExprId> values_of_reductions(const std::vector<std::uint32_t>& axes,
                                           const std::vector<ExprId>& roots) const;
  void compute_values_of_reductions(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots);
  void vector_loop(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& roots, const Visit& visit);
  std::string within_all_iterations(const std::string& iteration) const;
  std::vector<ExprId> loads_of(const std::vector<ExprId>& roots) const;
  std::map<ExprId, std::string> words_of_broadcasts(const std::vector<ExprId>& roots);
  std::string words_at_lanes(ExprId load);
  std::string words_at(ExprId load, const std::string& place);
  void edges(const std::vector<std::uint32_t>& axes, const std::vector<ExprId>& loads, const Visit& visit);

  const RowForm& form_;
  const ExprPool& pool_;
  const StridedReduction& plan_;
  const StridedReductionKernel& kernel_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  std::string thread_, chunk_, group_;  // thread in its group; block among those of the rows; the group's rows
  std::string chunks_;                  // number of blocks that share the rows
  std::string start_, stop_;            // range of the rows' elements in memory
  std::string first_, last_;            // range of the whole vectors
  std::string all_;                     // elements of all rows
  std::string first_row_, phase_;       // row of the first vector's first element, and of this thread's
  std::string idle_;                    // "" if every thread has a vector of the strip
  std::string arrived_;                 // co-resident blocks: their counters
  bool whole_strips_ = true;
  bool aligned_ = false, whole_ = false;           // no vector crosses the beginning; no vector crosses any end
  std::map<ExprId, std::string> broadcast_words_;  // words of operands that are the same for all lines, in a loop
  std::map<ExprId, std::string> derived_arrays_;   // arrays of values computed from results, while a loop is emitted
  std::map<ExprId, Done> done_;
  RegisterResidentRow values_;
};

}  // namespace fusec
