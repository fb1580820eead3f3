// The factors of one loop of a GEMM on their way from memory to a block's tiles.
//
//   plain       cp.async puts 16 bytes where ldmatrix will look for them, in the tile of a stage
//   computed    cp.async brings each thread pieces of what the factor is computed from; when they are there, the thread
//               computes the elements of one of two tiles from its own pieces, so that no barrier is needed but the one
//               that the tiles need anyhow (transformed_operand)
//   scaled      beside them a block of the depth has a scale for each row or column, in one of three places
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/gemm/split_k.h"

namespace fusec {

// One load's pieces: which of them a thread copies, and where to.
struct GemmCopy {
  const GemmOperand* operand = nullptr;
  std::int64_t offset = 0;  // in the stage
  int elements = 0;         // of a piece
  int units = 0;            // pieces in a line
  int lines = 0;
  int pass = 0;    // lines that the block copies at a time
  int copies = 0;  // of a thread
  std::string to, from, unit, line;
  std::string there;      // how many bytes of each copy are there; "" where all are
  bool in_pairs = false;  // how its units change places: prelude part tf32_fragments
  bool placed = false;    // each copy's place in the tile is so many bytes behind the one before
  bool turned = false;    // or is found from the first one's (prelude part swizzled_further), which is kept
  // Where all of a thread's copies come from places that are so many elements apart: `from` is the first.
  std::optional<std::int64_t> apart = std::nullopt;

  int bytes() const { return elements * operand->element_bits / 8; }
  int threads() const { return units * std::min(lines, pass); }  // that copy
};

struct GemmOperandTile {
  const GemmOperand* operand = nullptr;
  bool left = false;
  int across = 0;          // of the tile
  int units = 0;           // of 16 bytes in a line of the tile
  std::int64_t tile = 0;   // plain: in the stage; computed: the first of two, in the block's memory
  std::int64_t bytes = 0;  // of the tile
  std::int64_t scales = 0;
  std::vector<GemmCopy> copies;
  std::string fragments, places;  // places: where a lane finds them
  std::string make;               // a function that computes a piece; "" where they are copied
};

// Names of what the block knows.
struct GemmBlockContext {
  std::string row0, column0, batch;  // batch: flattened, "" where there is none
  std::string stages;                // the address of its shared memory
  std::string each;                  // counts a thread's copies
  // Where rows come in groups: the number of the block's, which is that of its matrix, where the group begins ("":
  // where its first tile does), and where it ends.
  std::string matrix, row_begin, row_end;
  std::string first_step = {};  // along the depth, where the block has a share of it; "": all of it
};

class GemmOperandLoader {
 public:
  GemmOperandLoader(const Contraction& product, const ContractionLoop& loop, const GemmLoop& operands,
                    const GemmForm& form, const GemmBlockContext& block, const Graph& graph, ExprEmitter& emitter);

  const std::vector<GemmOperandTile>& all() const { return operand_tiles_; }
  const GemmOperandTile& left(std::size_t i) const { return operand_tiles_[i]; }
  const GemmOperandTile& right(std::size_t i) const { return operand_tiles_[operands_.left.size() + i]; }
  bool computes() const;

  // Where this thread's copies come from and go to.
  void declare_copies();
  // `fetch(stage)` starts the copies of the next tile into the stage that begins so many bytes behind the first; its
  // name.
  std::string declare_fetch();
  // What `compute` calls.
  void declare_compute();
  // Makes the tiles of a step from a stage that is there, and its scales, if a block of the depth begins with it.
  // `first`: outside of the loop over steps.
  void compute(const std::string& step, const std::string& stage, bool first);
  bool has_to_compute() const { return computes() || scaled_in_blocks(); }
  // Scales that hold for the whole depth.
  void load_k_invariant_scales();
  // Adds to the sums what has been summed of a block of the depth.
  void add_parts(const ContractionTerm& term, const std::string& sum, const std::string& part, const std::string& slot);
  int steps_of_block() const { return steps_per_scale_block(operands_.block, form_.tiles.k); }
  int blocks_of_step() const { return operands_.blocks_of_tile(form_.tiles.k); }

 private:
  GemmOperandTile place(const GemmOperand& operand, bool left, std::int64_t& staged, std::int64_t& beside);
  std::optional<std::int64_t> elements_apart(const GemmOperandTile& f, const GemmCopy& c) const;
  bool clamped(const GemmOperandTile& f) const;
  void declare_copy(const GemmOperandTile& f, const GemmCopy& c);
  void copy(const GemmOperandTile& f, const GemmCopy& c, const std::string& into, const std::string& next);
  void copy_lines(const GemmCopy& c, const std::string& into, const std::string& next);
  void copy_each(const GemmOperandTile& f, const GemmCopy& c, const std::string& into, const std::string& next);
  void declare_there(const GemmOperandTile& f, const GemmCopy& c);
  void declare_piece(GemmOperandTile& f);
  void scales(const GemmOperandTile& f, const std::string& k0, const std::string& slot);
  std::string line_of(const GemmCopy& c) const;
  // A place across the tile that is among the factor's rows or columns: the last of them for what lies beyond.
  std::string across_at(const GemmOperandTile& f, const std::string& place, int elements);
  bool whole_tiles() const;
  bool scaled_in_blocks() const { return operands_.scaled() && operands_.block != 0; }
  IndexExpr count(const std::vector<std::uint32_t>& axes) const;
  std::string text(const IndexExpr& e);
  std::string step_of(const GemmOperand& operand);
  std::string k_at(const std::string& step) const;
  const std::vector<std::uint32_t>& across(const GemmOperandTile& f) const {
    return f.left ? product_.rows : product_.columns;
  }

  const Contraction& product_;
  const ContractionLoop& loop_;
  const GemmLoop& operands_;
  const GemmForm& form_;
  const GemmBlockContext& block_;
  const Graph& graph_;
  ExprEmitter& emitter_;
  KernelWriter& writer_;
  const ExprPool& pool_;
  std::vector<GemmOperandTile> operand_tiles_;
  std::string scale_blocks_;  // "": there are none

  // Pieces that a thread computes without a loop around them: NVRTC's time grows faster than their number (four of each
  // of two factors 330 ms, two 215, one 175). Outside of the loop over steps two wait for memory together.
  static constexpr int kMaxUnrolledInstructions = 6, kMostUnrolledAtFirst = 2;
};

}  // namespace fusec
