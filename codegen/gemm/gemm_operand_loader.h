// Loads the operands of one GEMM loop from global memory to a block's tiles.
//
//   plain         cp.async copies 16 bytes to where ldmatrix expects them, in the tile of a stage
//   transformed   cp.async copies the sources of a piece to the stage; the same thread later computes the elements
//                 of one of two tiles from its own pieces, so the tiles' barrier suffices (transformed_operand)
//   scaled        a scale per row or column for each block of K, in one of three slots
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/gemm/split_k.h"

namespace fusec {

// The pieces of one load: which of them a thread copies, and to where.
struct GemmCopy {
  const GemmOperand* operand = nullptr;
  std::int64_t offset = 0;  // in the stage, bytes
  int elements = 0;         // elements per piece
  int units = 0;            // pieces per line
  int lines = 0;
  int lines_per_pass = 0;  // lines that the block copies at a time
  int copies = 0;          // copies per thread
  std::string to, from, unit, line;
  std::string valid_bytes;         // variable with the valid bytes of each copy; "" if all are valid
  bool tf32_order = false;         // the unit order is swizzled for tf32 (prelude part tf32_fragments)
  bool constant_distance = false;  // a thread's copies are at a constant distance in the tile
  bool derived_address = false;    // a copy's address is derived from the first one's (prelude part swizzle_advance)
  // Elements between the sources of a thread's copies, if constant; `from` is then the first source.
  std::optional<std::int64_t> source_stride = std::nullopt;

  int bytes() const { return elements * operand->element_bits / 8; }
  int threads() const { return units * std::min(lines, lines_per_pass); }  // threads that copy
};

struct GemmOperandTile {
  const GemmOperand* operand = nullptr;
  bool left = false;
  int across = 0;          // rows or columns of the tile
  int units = 0;           // units of 16 bytes per line of the tile
  std::int64_t tile = 0;   // plain: offset in the stage; transformed: offset of the first of two tiles in the block
  std::int64_t bytes = 0;  // of the tile
  std::int64_t scales = 0;
  std::vector<GemmCopy> copies;
  std::string fragments, fragment_addresses;  // fragment_addresses: the shared memory addresses of a lane's fragments
  std::string compute_function;               // lambda that computes a piece; "" if the operand is copied
};

// Variables of the block.
struct GemmBlockContext {
  std::string row0, column0, batch;  // batch: flattened; "" if there is none
  std::string stages;                // shared memory address of the stages
  std::string each;                  // loop variable over a thread's copies
  // Grouped GEMM: the group and matrix index, the first row of the group ("": that of the tile), and one past its last
  // row.
  std::string matrix, row_begin, row_end;
  std::string first_step = {};  // split-K: the block's first step along K; "": 0
};

class GemmOperandLoader {
 public:
  GemmOperandLoader(const Contraction& contraction, const ContractionLoop& loop, const GemmLoop& operands,
                    const GemmForm& form, const GemmBlockContext& block, const Graph& graph, ExprEmitter& emitter);

  const std::vector<GemmOperandTile>& all() const { return operand_tiles_; }
  const GemmOperandTile& left(std::size_t i) const { return operand_tiles_[i]; }
  const GemmOperandTile& right(std::size_t i) const { return operand_tiles_[operands_.left.size() + i]; }
  bool computes() const;

  // Declares the source and destination addresses of this thread's copies.
  void declare_copies();
  // Declares a lambda `fetch(stage)` that starts the copies of the next tile into the stage at this byte offset.
  // Returns its name.
  std::string declare_fetch();
  // Declares the lambdas that compute() calls.
  void declare_compute();
  // Computes the tiles of a step from a stage that is ready, and loads scales if a block of K begins. `first`: outside
  // of the loop over steps.
  void compute(const std::string& step, const std::string& stage, bool first);
  bool has_to_compute() const { return computes() || scaled_in_blocks(); }
  // Loads the scales that are the same for all of K.
  void load_k_invariant_scales();
  // Adds the scaled partial sums of a block of K to the accumulator.
  void add_parts(const ContractionTerm& term, const std::string& accumulator, const std::string& part,
                 const std::string& slot);
  int steps_per_block() const { return steps_per_scale_block(operands_.block, form_.tiles.k); }
  int blocks_per_step() const { return operands_.blocks_per_tile(form_.tiles.k); }

 private:
  GemmOperandTile place(const GemmOperand& operand, bool left, std::int64_t& staged, std::int64_t& shared_end);
  std::optional<std::int64_t> source_stride_of(const GemmOperandTile& f, const GemmCopy& c) const;
  bool clamped(const GemmOperandTile& f) const;
  void declare_copy(const GemmOperandTile& f, const GemmCopy& c);
  void copy(const GemmOperandTile& f, const GemmCopy& c, const std::string& into, const std::string& next);
  void copy_lines(const GemmCopy& c, const std::string& into, const std::string& next);
  void copy_each(const GemmOperandTile& f, const GemmCopy& c, const std::string& into, const std::string& next);
  void declare_valid_bytes(const GemmOperandTile& f, const GemmCopy& c);
  void declare_piece(GemmOperandTile& f);
  void scales(const GemmOperandTile& f, const std::string& k0, const std::string& slot);
  std::string line_of(const GemmCopy& c) const;
  // The row or column at a position in the tile; positions beyond the end stand for the last one.
  std::string across_at(const GemmOperandTile& f, const std::string& place, int elements);
  bool whole_tiles() const;
  bool scaled_in_blocks() const { return operands_.scaled() && operands_.block != 0; }
  IndexExpr count(const std::vector<std::uint32_t>& axes) const;
  std::string text(const IndexExpr& e);
  std::string step_of(const GemmOperand& operand);
  std::string k_at(const std::string& step) const;
  const std::vector<std::uint32_t>& across(const GemmOperandTile& f) const {
    return f.left ? contraction_.rows : contraction_.columns;
  }

  const Contraction& contraction_;
  const ContractionLoop& loop_;
  const GemmLoop& operands_;
  const GemmForm& form_;
  const GemmBlockContext& block_;
  const Graph& graph_;
  ExprEmitter& emitter_;
  KernelWriter& writer_;
  const ExprPool& pool_;
  std::vector<GemmOperandTile> operand_tiles_;
  std::string scale_blocks_;  // lambda that loads the scales; "" if there is none

  // Pieces that a thread computes unrolled. NVRTC's time grows faster than their number (two operands with four pieces
  // each: 330 ms; with two: 215; with one: 175). Before the loop over steps the loads of two pieces are in flight
  // together.
  static constexpr int kMaxUnrolledPieces = 6, kMaxUnrolledBeforeLoop = 2;
};

}  // namespace fusec
