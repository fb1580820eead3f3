// Emits the kernel that codegen/convolution/nchw_stencil.h describes. nchw_stencil.cpp places threads, adds up and
// stores results; nchw_stencil_staging.cpp copies weights and input to shared memory.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "codegen/expr/kernel_source.h"
#include "codegen/expr/kernel_writer.h"
#include "schedule/convolution/nchw_stencil.h"

namespace fusec {

// "4 * i", "i" or "0".
std::string times(std::int64_t count, const std::string& i);
// The sum of the nonzero terms: "a + 4 * i".
std::string sum_of_terms(const std::vector<std::string>& terms);
std::string in_parentheses(const std::string& text);

class NchwStencilEmitter {
 public:
  NchwStencilEmitter(const Kernel& original, const NchwStencil& stencil, const Graph& graph)
      : original_(original),
        w_(stencil),
        t_(stencil.tiles),
        pool_(w_.kernel.pool),
        graph_(graph),
        plane_count_(point_count(pool_, w_.planes)),
        writer_(graph, needs_wide_index(original, graph, blocks() * t_.threads())),
        input_emitter_(w_.kernel, writer_),
        results_(w_.vectors.kernel, writer_) {}

  KernelSource emit();

 private:
  std::string text(const IndexExpr& e) { return input_emitter_.index_text().tight(simplify(e, pool_.bounds())); }
  std::string integer() const { return writer_.index_type(); }
  const IndexExpr& width() const { return pool_.extent(w_.columns.result); }
  IndexExpr height() const { return w_.rows ? pool_.extent(w_.rows->result) : IndexExpr(1); }
  IndexExpr across() const { return simplify(ceil_div(width(), t_.block_columns()), pool_.bounds()); }
  IndexExpr down() const { return simplify(ceil_div(height(), t_.block_rows()), pool_.bounds()); }
  IndexExpr blocks() const { return simplify(ceil_div(plane_count_, t_.planes) * across() * down(), pool_.bounds()); }
  bool whole(const IndexExpr& extent, std::int64_t of_block) const;
  static std::string for_each(const std::string& i, std::int64_t count);
  // Opens a loop with an optional unroll pragma and returns its variable. A single iteration needs no loop: returns
  // "0".
  std::string open_each(const std::string& preferred_name, std::int64_t count,
                        std::string_view unroll = "#pragma unroll");
  void close_each(int loops = 1);

  std::vector<std::string> comment() const;

  // Declares the block's first result and plane.
  void place_block();

  void place_thread();
  int busy_threads() const { return t_.thread_columns * t_.thread_rows * t_.planes; }
  bool idle_threads() const { return busy_threads() < t_.threads(); }

  void declare_tiles();

  // name[member][row][column]
  void declare_accumulators();

  // Binds the looped axes to the `point`-th point in shared memory.
  void bind_point(ExprEmitter& emitter, const std::string& point);

  // Weights in shared memory: [plane][point][tap][member].
  void stage_weights();

  // Distributes threads over the vectors of a line, then lines, then planes. A thread copies all points of a plane.
  void stage_places();

  // Emits the values that do not depend on the line, before the loop over lines.
  void begin_copy(const std::string& c);

  // The number of positions that the block's existing results need.
  std::string places_here(const StencilAxis& window, const IndexExpr& extent, std::int64_t of_block, std::int64_t most,
                          const std::string& first, const std::string& preferred_name);

  // Binds a result and a tap that meet at a position of the block; one of them is fixed to the first.
  void bind_place(const StencilAxis& window, const std::string& first, const std::string& place);

  void copy_one(const std::string& c, const std::string& at);

  void copy_vector(const std::string& at);

  // The selects `there ? load : 0` with the same mask as the load.
  std::vector<ExprId> guarded_by_zeros(ExprId staged, ExprId load) const;

  bool moves(ExprId load) const;

  // Neighbours of one load as 32-bit words. Fewer than four bytes are the lower part of a word.
  std::string load_words(ExprId id, const std::map<ExprId, std::string>& guards);

  void add_up();

  // Reads each line of positions once, for all its results and taps.
  void add_all_rows(const std::string& point);

  // Unrolls only few of the taps.
  void add_row_by_row(const std::string& point);

  // Loads `rows` rows of weights from `at` on: [row of taps][tap][member].
  std::string load_taps(ExprId id, const std::string& at, std::int64_t rows);

  // The address in shared memory of the first line that a thread's results need.
  std::map<ExprId, std::string> lines_of_thread(const std::string& point);

  std::string load_line(ExprId id, const std::string& first, const std::string& row);

  void add_line(const std::map<ExprId, std::string>& taps, const std::map<ExprId, std::string>& lines,
                const std::string& u, const std::string& i);

  void finish_results();

  // Whole vectors are loaded and stored if the results end with a whole vector.
  void finish_vector(const std::string& of, const std::string& vector);

  const Kernel& original_;
  const NchwStencil& w_;
  const NchwStencilTiles& t_;
  const ExprPool& pool_;
  const Graph& graph_;
  const IndexExpr plane_count_;
  KernelWriter writer_;
  ExprEmitter input_emitter_, results_;  // for copies; for columns as vectors
  std::string column0_, row0_, plane0_, column_, row_, plane_, from_, first_;
  std::map<ExprId, std::string> tiles_, addresses_;
  std::vector<ExprEmitter::Accumulator> accumulators_;
  std::vector<bool> opened_;  // loops that are still open
};

}  // namespace fusec
