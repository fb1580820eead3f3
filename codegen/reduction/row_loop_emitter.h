// Emits the loops over a row for the threads that share it. Trip counts are constants if the length is known. Each
// iteration takes a vector if memory allows; the elements at the ends of unaligned rows follow the loop. Values that
// later loops need are kept in registers or shared memory (register_resident_row). Misaligned operands are staged in
// shared memory (broadcast_tile).
//
//   for (int turn = 0; turn < 4; ++turn) {      // a vector for each of the row's threads
//     const int k = lane + turn * 256;
//     x_row[turn] = load_words<4>(x + ...);
//     for (int e = 0; e < 4; ++e) ...           // Visit::element
//   }
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "codegen/reduction/broadcast_tile.h"
#include "codegen/reduction/register_resident_row.h"
#include "codegen/reduction/row_vectors.h"
#include "codegen/reduction/rows_ahead.h"
#include "schedule/reduction/row_layout.h"

namespace fusec {

class RowLoopEmitter {
 public:
  struct Row {
    const RowForm& form;
    const Graph& graph;
    const RowLayout& layout;
    const RowSplit& split;
    std::int64_t shared_bytes = 0;  // shared memory limit per block
  };
  RowLoopEmitter(const Row& row, KernelWriter& writer, ExprEmitter& emitter);

  // A loop over these axes of the form.
  RowLoop loop_over(const std::vector<std::uint32_t>& axes, std::vector<ExprId> roots) const;
  // Decides what is kept between the loops, given in execution order. Without this call nothing is kept.
  void plan_reuse(const std::vector<RowLoop>& loops);

  // Names of variables: this thread among those of the row, and its block. Each of `chunks` blocks takes a part of the
  // row.
  struct Place {
    std::string part, block;
    int chunks = 1;
    std::string chunk_count = "1";  // at launch
  };
  // Call before the first loop, with the axes of rows bound.
  void begin(Place place);

  // Callbacks of a loop. `element` emits the code of one element; `lane` is its index in the vector, "" for a scalar.
  // `before` and `after` emit code around the elements of a vector.
  struct Visit {
    std::function<void(const std::string& lane)> element;
    std::function<void()> before = [] {};
    std::function<void()> after = [] {};
  };
  void over_row(const RowLoop& loop, std::string_view preferred_name, const Visit& visit);
  // For use in `before`: a loop over the elements of this iteration's vector that the roots need.
  void over_vector(const RowLoop& loop, const std::vector<ExprId>& roots,
                   const std::function<void(const std::string& lane)>& element);

  // For groups that take several rows one after the other: emits the row-invariant loads before the first row.
  void load_row_invariants(const std::vector<RowLoop>& loops);
  // Around the rows, and around each: copies of rows to shared memory before their turn.
  void begin_rows(const std::string& first_row, const std::string& rows) {
    if (ahead_) ahead_->begin(place_.part, first_row, rows);
  }
  void open_row(const std::string& row) {
    if (ahead_) ahead_->open_row(row);
  }
  void close_row() {
    if (ahead_) ahead_->close_row();
  }
  void end_rows() {
    if (ahead_) ahead_->end();
  }
  std::int64_t bytes_of_rows_ahead() const { return ahead_ ? ahead_->shared_bytes() : 0; }
  // Trip count of the loop over these axes, if it is known and the loop is unrolled; else 0.
  int iterations_in_registers(const std::vector<std::uint32_t>& axes) const {
    return resident_row_.in_shared_memory() ? 0 : resident_row_.iterations_of(axes);
  }
  // In such a loop: the index of the current element among the thread's elements.
  std::string place_of_thread(const std::string& lane) const {
    return lane.empty() ? resident_row_.iteration()
                        : resident_row_.iteration() + " * " + std::to_string(row_.split.column_width) + " + " + lane;
  }

  bool rows_stay_resident() const { return keeps_rows_; }
  // True if only the first part of a row is kept.
  bool reads_again() const { return resident_row_.keeps_prefix_only(); }
  // True if a thread keeps so many registers that less than half of a multiprocessor's threads fit, and it keeps
  // scalars, or rows with several axes. These also need the address of each iteration; ptxas then spills registers, and
  // few blocks are resident.
  bool keeps_too_many_registers() const;
  // Minimum of resident blocks per multiprocessor for __launch_bounds__; 0: none. Without it, ptxas spills registers of
  // rows that are shared or kept, to fit more blocks.
  int blocks_at_once() const;
  // Dynamic shared memory per block, in bytes.
  IndexExpr shared_bytes() const {
    return has_tiles() ? resident_row_.most_shared_bytes() + tiles_->shared_bytes() : resident_row_.shared_bytes();
  }

 private:
  void plan_sequential(const std::vector<RowLoop>& loops);
  std::string words_elsewhere(ExprId load, const std::function<void(const std::string& place)>& fill);
  void keep(RowRegisters plan, const std::vector<RowLoop>& loops);
  bool has_tiles() const { return tiles_ && !tiles_->empty(); }
  bool has_length_of_launch() const;
  std::int64_t shared_bytes_of_block() const;
  bool is_short_of_registers(const RowRegisters& plan, const std::vector<RowLoop>& loops) const;
  bool needs_spare_registers(const RowRegisters& plan, const std::vector<RowLoop>& loops) const;
  int reductions_of_64_bits() const;
  bool has_planes(const RowLoop& loop) const;
  std::size_t tensors_along(const std::vector<RowLoop>& loops) const;
  void plan_tiles(const std::vector<RowLoop>& loops);
  void find_vectors();
  void emit_iterations(const RowLoop& loop, std::string_view preferred_name, const Visit& visit, int prefix_iterations);
  void vector_iteration(const RowLoop& loop, const Visit& visit);
  std::vector<ExprId> declare_joined(const RowLoop& loop);
  void edge_iteration(const RowLoop& loop, const Visit& visit);
  void open_loop(const RowLoop& loop, const std::vector<std::uint32_t>& axes, std::string_view preferred_name,
                 int prefix_iterations);
  void open_counted_iterations(const std::string& first, const std::string& limit, int iterations, std::int64_t whole,
                               bool floats, const std::string& unroll);
  void open_iterations_of_launch(const std::string& first, const std::string& limit, int iterations,
                                 const std::string& unroll);
  std::int64_t iterations_without_end(const IndexExpr& count, bool floats) const;
  void close_loop();
  const Bounds& bounds() const { return row_.form.kernel.pool.bounds(); }

  const Row row_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  RegisterResidentRow resident_row_;
  std::optional<BroadcastTiles> tiles_;
  std::optional<RowsAhead> ahead_;
  bool keeps_rows_ = false;
  bool keeps_elements_ = false;  // element by element, not in vectors
  bool has_several_axes_ = false;
  int ends_of_planes_ = 0;  // registers for the positions of plane ends within vectors
  int register_words_ = 0;
  int blocks_planned_ = 0;  // per multiprocessor, if what is kept was chosen for so many
  bool needs_spare_registers_ = false;
  int code_of_iterations_ = 0;  // instructions of one iteration of each loop
  Place place_;
  std::string first_, last_;           // unaligned rows: where the row's whole vectors begin and end
  std::string vector_, lane_;          // current position of the loop
  std::string edge_, edge_condition_;  // this thread's edge element, if it has one
  bool condition_open_ = false;        // inside the bounds check of a loop with a constant trip count
};

}  // namespace fusec
