// The loops over a row, as the threads that share it make them: so many turns where its length is known, a vector to a
// turn where memory allows, and where rows begin anywhere the elements at their ends behind it. What later loops need
// once more is kept in registers or shared memory (register_resident_row), what lies differently to the row's vectors
// is in shared memory (broadcast_tile).
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
#include "schedule/reduction/row_layout.h"

namespace fusec {

class RowLoopEmitter {
 public:
  struct Row {
    const RowForm& form;
    const Graph& graph;
    const RowLayout& layout;
    const RowSplit& split;
    std::int64_t shared_bytes = 0;  // that a block may have
  };
  RowLoopEmitter(const Row& row, KernelWriter& writer, ExprEmitter& emitter);

  // A loop over these axes of the form.
  RowLoop loop_over(const std::vector<std::uint32_t>& axes, std::vector<ExprId> roots) const;
  // All loops, in the order in which they run: what of it is kept between them is decided here. Without this nothing
  // is.
  void plan_reuse(const std::vector<RowLoop>& loops);

  // Names of variables: this thread's number among those that take the row, and its block's. Of `chunks` blocks each
  // goes over a part of the row.
  struct Place {
    std::string part, block;
    int chunks = 1;
    std::string chunk_count = "1";  // of a launch
  };
  // Before the first loop; the axes of rows are bound.
  void begin(Place place);

  // What a loop does: `element` prints it for one element, with `lane` the number of that element in its vector, ""
  // where it is none; `before` and `after` stand around the elements of a vector.
  struct Visit {
    std::function<void(const std::string& lane)> element;
    std::function<void()> before = [] {};
    std::function<void()> after = [] {};
  };
  void over_row(const RowLoop& loop, std::string_view preferred_name, const Visit& visit);
  // In `before`: a loop over the elements of this turn's vector that the roots need.
  void over_vector(const RowLoop& loop, const std::vector<ExprId>& roots,
                   const std::function<void(const std::string& lane)>& element);

  // Rows that a team takes one after the other: before the first of them, what loops read of all of them.
  void load_row_invariants(const std::vector<RowLoop>& loops);
  // Of the loop over these axes, where its turns are counted and unrolled; else 0.
  int iterations_in_registers(const std::vector<std::uint32_t>& axes) const {
    return resident_row_.in_shared_memory() ? 0 : resident_row_.iterations_of(axes);
  }
  // In such a loop: which of the thread's elements this one is.
  std::string place_of_thread(const std::string& lane) const {
    return lane.empty() ? resident_row_.iteration()
                        : resident_row_.iteration() + " * " + std::to_string(row_.split.column_width) + " + " + lane;
  }

  bool rows_stay_resident() const { return keeps_rows_; }
  // Is only the beginning of a row kept?
  bool reads_again() const { return resident_row_.keeps_prefix_only(); }
  // Do threads keep so much that less than half of a multiprocessor's threads have room, single elements or what lies
  // along several axes? Beside it stands where each turn reads: ptxas spills some, and a launch has few blocks at once.
  bool keeps_too_many_registers() const;
  // Left alone, ptxas spills registers of what shares a row, or keeps it, for more blocks on a multiprocessor than
  // these; 0: it does not.
  int blocks_at_once() const;
  // The dynamic shared memory that a block needs.
  IndexExpr shared_bytes() const {
    return has_tiles() ? resident_row_.most_shared_bytes() + tiles_->shared_bytes() : resident_row_.shared_bytes();
  }

 private:
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
  void emit_iterations(const RowLoop& loop, std::string_view preferred_name, const Visit& visit, int behind);
  void vector_iteration(const RowLoop& loop, const Visit& visit);
  std::vector<ExprId> declare_joined(const RowLoop& loop);
  void edge_iteration(const RowLoop& loop, const Visit& visit);
  void open_loop(const RowLoop& loop, const std::vector<std::uint32_t>& axes, std::string_view preferred_name,
                 int behind);
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
  bool keeps_rows_ = false;
  bool keeps_elements_ = false;  // one by one, not vectors
  bool has_several_axes_ = false;
  int ends_of_planes_ = 0;  // registers of where planes end within vectors
  int register_words_ = 0;
  bool needs_spare_registers_ = false;
  int code_of_iterations_ = 0;  // instructions of one turn of every loop
  Place place_;
  std::string first_, last_;           // rows that begin anywhere: where the row's whole vectors begin and end
  std::string vector_, lane_;          // what a loop is at
  std::string edge_, edge_condition_;  // and this thread's element of the others, where it has one
  bool condition_open_ = false;        // inside a loop whose turns are counted and whose last may be past the end
};

}  // namespace fusec
