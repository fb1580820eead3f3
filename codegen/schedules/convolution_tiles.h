// How the tiles of a convolution's factors are filled (analysis/convolution_form.h): the tables that a block makes
// before its loop, what each thread keeps of its lines, and what it does for a step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/convolution_form.h"
#include "codegen/emit_expr.h"
#include "codegen/kernel_writer.h"

namespace fusec {

// One factor's tile.
struct ConvolutionTile {
  const ConvolutionFactor* factor = nullptr;
  bool left = false;
  bool along_depth = true;  // its lines run along the depth
  int across = 0;
  int units = 0;            // of 16 bytes in a line
  std::int64_t offset = 0;  // in its stage
  std::string table, from, outside, line, part, to, waiting, fragments;
  std::string places;  // of words, where lines run across: where a lane finds them
  std::string lines;   // a table of the lines' places by tap
  // Of strips: elements from one of a thread's lines to the next, where all are found from the first one's place.
  std::optional<std::int64_t> apart = std::nullopt;
};

class ConvolutionTiles {
 public:
  ConvolutionTiles(const Kernel& kernel, const Product& product, const ConvolutionForm& form, KernelWriter& writer,
                   ExprEmitter& emitter);

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

  const ConvolutionTile& left() const { return left_; }
  const ConvolutionTile& right() const { return right_; }
  // Of the depth, in tiles.
  std::int64_t steps() const { return form_.entries() / tiles_.depth; }

 private:
  ConvolutionTile tile(const ConvolutionFactor& factor, bool left);
  IndexExpr count(const std::vector<std::uint32_t>& axes) const;
  std::string text(const IndexExpr& e);
  int together() const { return 16 / form_.element_bytes(); }
  // Of bytes or halves on their way through registers.
  const char* element_type() const { return form_.element_bytes() == 1 ? "unsigned char" : "unsigned short"; }
  const std::vector<std::uint32_t>& across(const ConvolutionTile& t) const;

  void make_table(const ConvolutionTile& t);
  void make_places(const ConvolutionTile& t);
  void declare(const ConvolutionTile& t);

  // Elements one by one, each thread with one line.
  void declare_gather(const ConvolutionTile& t);
  void find_line(const ConvolutionTile& t, const std::string& line, const std::string& from,
                 const std::string& outside);
  std::string from(const ConvolutionTile& t);
  int units_of_thread(const ConvolutionTile& t) const;
  struct TableStep {
    std::string step, further;  // further: " + " what is added to positions, or ""
  };
  TableStep step_of_table(const ConvolutionTile& t, const std::string& step);
  void gather_to_registers(const ConvolutionTile& t, const std::string& step);
  void store_gathered(const ConvolutionTile& t, const std::string& into);
  void gather_asynchronously(const ConvolutionTile& t, const std::string& into, const std::string& step);

  // 16 bytes at a time: as they lie one behind the other, or where a table says.
  int pass(const ConvolutionTile& t) const { return tiles_.threads() / t.units; }
  int copies(const ConvolutionTile& t) const;
  // Lanes have no registers for where each line is; those that do not move are one place and what is between them.
  bool stand_still() const { return !form_.tensor_cores(); }
  bool fills(const ConvolutionTile& t) const;
  std::optional<std::int64_t> elements_apart(const ConvolutionTile& t) const;
  void bind_place(const ConvolutionTile& t, const std::string& here);
  void bind_line(const ConvolutionTile& t, const std::string& line);
  std::string is_there(const ConvolutionTile& t, const std::string& line);
  void declare_copy(const ConvolutionTile& t);
  void copy(const ConvolutionTile& t, const std::string& into, const std::string& step);
  void declare_pieces(const ConvolutionTile& t);
  void copy_pieces(const ConvolutionTile& t, const std::string& into, const std::string& step);

  // Strips: neighbouring threads take neighbours along the depth.
  int lines_of_thread(const ConvolutionTile& t) const { return t.across / (tiles_.threads() / tiles_.depth); }
  std::string strip_line(const ConvolutionTile& t) const;
  void declare_strips(const ConvolutionTile& t);
  void declare_tabled_strips(const ConvolutionTile& t);
  std::string open_strips(const ConvolutionTile& t, const std::string& step);
  std::string strip_place(const ConvolutionTile& t) const;
  void strips_to_registers(const ConvolutionTile& t, const std::string& step);
  void declare_waiting(const ConvolutionTile& t);
  int lines_apart() const;
  int places_of_strips(const ConvolutionTile& t) const;
  bool widens_e4m3(const ConvolutionTile& t) const;
  void store_strips(const ConvolutionTile& t, const std::string& into);
  void strips_asynchronously(const ConvolutionTile& t, const std::string& into, const std::string& step);

  bool waits(const ConvolutionTile& t) const;
  void to_registers(const ConvolutionTile& t, const std::string& step);
  void fill(const ConvolutionTile& t);

  const Product& product_;
  const ConvolutionForm& form_;
  const GemmTiles& tiles_;
  const ExprPool& pool_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  std::string row0_, column0_, stages_, first_ = "0", end_;
  ConvolutionTile left_, right_;
};

}  // namespace fusec
