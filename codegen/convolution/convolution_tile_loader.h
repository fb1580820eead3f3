// Emits the loads of a convolution's operand tiles (schedule/gemm/convolution_form.h): the tables that a block makes
// before its K loop, what each thread keeps about its lines, and the copies of each step.
//
// The K-offset table has as many entries as its period. If column and tap together determine where an element is
// (enlarged images, reflected borders), a table of places by line and tap is made first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "codegen/expr/kernel_writer.h"
#include "schedule/gemm/convolution_form.h"

namespace fusec {

// One operand's tile.
struct ConvolutionOperandTile {
  const ConvolutionOperand* operand = nullptr;
  bool left = false;
  bool k_major = true;  // its lines run along K
  int across = 0;
  int units = 0;            // 16-byte units per line
  std::int64_t offset = 0;  // in its stage
  std::string table, from, outside, line, part, to, waiting, fragments;
  std::string places;  // if lines run across K: where a lane finds its words
  std::string lines;   // a table of the lines' positions by tap
  // Strips: elements between two lines of a thread, if all lines are a constant distance from the first.
  std::optional<std::int64_t> distance = std::nullopt;
};

class ConvolutionTileLoader {
 public:
  ConvolutionTileLoader(const Kernel& kernel, const Contraction& contraction, const ConvolutionForm& form,
                        KernelWriter& writer, ExprEmitter& emitter);

  // Sets the block's tile origin, the pipeline's shared memory, and the block's K range as steps [first, end). All are
  // names of C variables, or numbers.
  void place(const std::string& row0, const std::string& column0, const std::string& stages, const std::string& first,
             const std::string& end);
  // Emits the tables and each thread's variables about its lines.
  void declare();
  // True if some elements are staged in registers, one step before their tile is fetched.
  bool keeps() const;
  // True if the prologue's register loads may also be in a loop, which keeps the text short.
  bool keeps_in_loop() const;
  // Emits a function of `step` that starts the register loads of that step, if there is one. Returns its name.
  std::string declare_keep();
  // Emits a function of `step` and the stage offset `into` that fetches a tile. Returns its name.
  std::string declare_fetch();

  const ConvolutionOperandTile& left() const { return left_; }
  const ConvolutionOperandTile& right() const { return right_; }
  // K steps: the number of tiles along K.
  std::int64_t steps() const { return form_.entries() / tiles_.k; }

 private:
  ConvolutionOperandTile tile(const ConvolutionOperand& operand, bool left);
  IndexExpr count(const std::vector<std::uint32_t>& axes) const;
  std::string text(const IndexExpr& e);
  int elements_per_unit() const { return 16 / form_.element_bytes(); }
  // Type of 8-bit or 16-bit elements staged in registers.
  const char* element_type() const { return form_.element_bytes() == 1 ? "unsigned char" : "unsigned short"; }
  const std::vector<std::uint32_t>& across(const ConvolutionOperandTile& t) const;

  void make_table(const ConvolutionOperandTile& t);
  void make_position_table(const ConvolutionOperandTile& t);
  void declare(const ConvolutionOperandTile& t);

  // --- element by element; each thread has one line
  void declare_gather(const ConvolutionOperandTile& t);
  void find_line(const ConvolutionOperandTile& t, const std::string& line, const std::string& from,
                 const std::string& outside);
  std::string from(const ConvolutionOperandTile& t);
  int units_of_thread(const ConvolutionOperandTile& t) const;
  struct TableStep {
    std::string step, further;  // further: " + " and the offset of the positions, or ""
  };
  TableStep step_of_table(const ConvolutionOperandTile& t, const std::string& step);
  void gather_to_registers(const ConvolutionOperandTile& t, const std::string& step);
  void store_gathered(const ConvolutionOperandTile& t, const std::string& into);
  void gather_asynchronously(const ConvolutionOperandTile& t, const std::string& into, const std::string& step);

  // --- 16 bytes at a time, contiguous or gathered through a table
  int pass(const ConvolutionOperandTile& t) const { return tiles_.threads() / t.units; }
  int copies(const ConvolutionOperandTile& t) const;
  // Without tensor cores, lanes lack registers for the position of each line. They keep one position and the distance
  // between lines.
  bool keeps_one_position() const { return !form_.tensor_cores(); }
  bool fills(const ConvolutionOperandTile& t) const;
  std::optional<std::int64_t> source_stride_of(const ConvolutionOperandTile& t) const;
  void bind_position(const ConvolutionOperandTile& t, const std::string& here);
  void bind_line(const ConvolutionOperandTile& t, const std::string& line);
  std::string is_there(const ConvolutionOperandTile& t, const std::string& line);
  void declare_copy(const ConvolutionOperandTile& t);
  void copy(const ConvolutionOperandTile& t, const std::string& into, const std::string& step);
  void declare_pieces(const ConvolutionOperandTile& t);
  void copy_pieces(const ConvolutionOperandTile& t, const std::string& into, const std::string& step);

  // --- strips: neighbouring threads load neighbours along K
  int lines_of_thread(const ConvolutionOperandTile& t) const { return t.across / (tiles_.threads() / tiles_.k); }
  std::string strip_line(const ConvolutionOperandTile& t) const;
  void declare_strips(const ConvolutionOperandTile& t);
  void declare_tabled_strips(const ConvolutionOperandTile& t);
  std::string open_strips(const ConvolutionOperandTile& t, const std::string& step);
  std::string strip_address(const ConvolutionOperandTile& t) const;
  void strips_to_registers(const ConvolutionOperandTile& t, const std::string& step);
  void declare_waiting(const ConvolutionOperandTile& t);
  int line_distance() const;
  int copies_per_strip(const ConvolutionOperandTile& t) const;
  bool widens_e4m3(const ConvolutionOperandTile& t) const;
  void store_strips(const ConvolutionOperandTile& t, const std::string& into);
  void strips_asynchronously(const ConvolutionOperandTile& t, const std::string& into, const std::string& step);

  bool waits(const ConvolutionOperandTile& t) const;
  void to_registers(const ConvolutionOperandTile& t, const std::string& step);
  void fill(const ConvolutionOperandTile& t);

  const Contraction& contraction_;
  const ConvolutionForm& form_;
  const GemmTiles& tiles_;
  const ExprPool& pool_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  std::string row0_, column0_, stages_, first_ = "0", end_;
  ConvolutionOperandTile left_, right_;
};

}  // namespace fusec
