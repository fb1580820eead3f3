// How the tiles of a convolution's factors are filled (schedule/gemm/convolution_form.h): the tables that a block makes
// before its loop, what each thread keeps of its lines, and what it does for a step.
//
// The table has as many entries as there are before it repeats itself. Where column and tap together say where an
// element is (enlarged images, reflected borders), a table of places by line and tap comes first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "codegen/expr/kernel_writer.h"
#include "schedule/gemm/convolution_form.h"

namespace fusec {

// One factor's tile.
struct ConvolutionOperandTile {
  const ConvolutionOperand* operand = nullptr;
  bool left = false;
  bool k_major = true;  // its lines run along the depth
  int across = 0;
  int units = 0;            // of 16 bytes in a line
  std::int64_t offset = 0;  // in its stage
  std::string table, from, outside, line, part, to, waiting, fragments;
  std::string places;  // of words, where lines run across: where a lane finds them
  std::string lines;   // a table of the lines' places by tap
  // Of strips: elements from one of a thread's lines to the next, where all are found from the first one's place.
  std::optional<std::int64_t> apart = std::nullopt;
};

class ConvolutionTileLoader {
 public:
  ConvolutionTileLoader(const Kernel& kernel, const Contraction& product, const ConvolutionForm& form,
                        KernelWriter& writer, ExprEmitter& emitter);

  // Where the block's tile begins, the pipeline, and the block's first step along the depth and the one behind its
  // last: names of C variables, or numbers.
  void place(const std::string& row0, const std::string& column0, const std::string& stages, const std::string& first,
             const std::string& end);
  // Tables, and what each thread keeps of its lines.
  void declare();
  // Some elements go by way of registers, a step before their tile is fetched.
  bool keeps() const;
  // The first of them, too, are loaded in a loop: the text has them once less for each stage.
  bool keeps_in_loop() const;
  // A function of `step` that begins to load them, if there is such a step; gives its name.
  std::string declare_keep();
  // One of `step` and the stage's offset `into` that fetches a tile; gives its name.
  std::string declare_fetch();

  const ConvolutionOperandTile& left() const { return left_; }
  const ConvolutionOperandTile& right() const { return right_; }
  // Of the depth, in tiles.
  std::int64_t steps() const { return form_.entries() / tiles_.k; }

 private:
  ConvolutionOperandTile tile(const ConvolutionOperand& operand, bool left);
  IndexExpr count(const std::vector<std::uint32_t>& axes) const;
  std::string text(const IndexExpr& e);
  int together() const { return 16 / form_.element_bytes(); }
  // Of bytes or halves on their way through registers.
  const char* element_type() const { return form_.element_bytes() == 1 ? "unsigned char" : "unsigned short"; }
  const std::vector<std::uint32_t>& across(const ConvolutionOperandTile& t) const;

  void make_table(const ConvolutionOperandTile& t);
  void make_places(const ConvolutionOperandTile& t);
  void declare(const ConvolutionOperandTile& t);

  // Elements one by one, each thread with one line.
  void declare_gather(const ConvolutionOperandTile& t);
  void find_line(const ConvolutionOperandTile& t, const std::string& line, const std::string& from,
                 const std::string& outside);
  std::string from(const ConvolutionOperandTile& t);
  int units_of_thread(const ConvolutionOperandTile& t) const;
  struct TableStep {
    std::string step, further;  // further: " + " what is added to positions, or ""
  };
  TableStep step_of_table(const ConvolutionOperandTile& t, const std::string& step);
  void gather_to_registers(const ConvolutionOperandTile& t, const std::string& step);
  void store_gathered(const ConvolutionOperandTile& t, const std::string& into);
  void gather_asynchronously(const ConvolutionOperandTile& t, const std::string& into, const std::string& step);

  // 16 bytes at a time: as they lie one behind the other, or where a table says.
  int pass(const ConvolutionOperandTile& t) const { return tiles_.threads() / t.units; }
  int copies(const ConvolutionOperandTile& t) const;
  // Lanes have no registers for where each line is; those that do not move are one place and what is between them.
  bool stand_still() const { return !form_.tensor_cores(); }
  bool fills(const ConvolutionOperandTile& t) const;
  std::optional<std::int64_t> elements_apart(const ConvolutionOperandTile& t) const;
  void bind_place(const ConvolutionOperandTile& t, const std::string& here);
  void bind_line(const ConvolutionOperandTile& t, const std::string& line);
  std::string is_there(const ConvolutionOperandTile& t, const std::string& line);
  void declare_copy(const ConvolutionOperandTile& t);
  void copy(const ConvolutionOperandTile& t, const std::string& into, const std::string& step);
  void declare_pieces(const ConvolutionOperandTile& t);
  void copy_pieces(const ConvolutionOperandTile& t, const std::string& into, const std::string& step);

  // Strips: neighbouring threads take neighbours along the depth.
  int lines_of_thread(const ConvolutionOperandTile& t) const { return t.across / (tiles_.threads() / tiles_.k); }
  std::string strip_line(const ConvolutionOperandTile& t) const;
  void declare_strips(const ConvolutionOperandTile& t);
  void declare_tabled_strips(const ConvolutionOperandTile& t);
  std::string open_strips(const ConvolutionOperandTile& t, const std::string& step);
  std::string strip_place(const ConvolutionOperandTile& t) const;
  void strips_to_registers(const ConvolutionOperandTile& t, const std::string& step);
  void declare_waiting(const ConvolutionOperandTile& t);
  int lines_apart() const;
  int places_of_strips(const ConvolutionOperandTile& t) const;
  bool widens_e4m3(const ConvolutionOperandTile& t) const;
  void store_strips(const ConvolutionOperandTile& t, const std::string& into);
  void strips_asynchronously(const ConvolutionOperandTile& t, const std::string& into, const std::string& step);

  bool waits(const ConvolutionOperandTile& t) const;
  void to_registers(const ConvolutionOperandTile& t, const std::string& step);
  void fill(const ConvolutionOperandTile& t);

  const Contraction& product_;
  const ConvolutionForm& form_;
  const GemmTiles& tiles_;
  const ExprPool& pool_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  std::string row0_, column0_, stages_, first_ = "0", end_;
  ConvolutionOperandTile left_, right_;
};

}  // namespace fusec
