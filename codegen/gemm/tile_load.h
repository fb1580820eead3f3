// Fills a tile in shared memory with the values of an expression along some axes: a matrix product's factor, with
// whatever stands before the product. Elements beyond the axes' ends are 0.
//
//   tile[line][place] = factor(line0 + line, place)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"

namespace fusec {

struct TileLoad {
  std::string tile;  // a pointer to shared memory
  int stride = 0;    // of its lines, in elements
  int lines = 0, places = 0;
  ExprId operand = kNoExpr;
  std::vector<std::uint32_t> along_lines, along_places;
  std::string line0;              // where the first line is along its axes
  std::string place0 = "";        // the same of the first place; "": all places are in the tile
  int unrolled = 0;               // so many elements at once that no access has several of; 0: as the compiler likes
  bool async = false;             // where elements come unchanged: copied while threads go on, until wait_for_copies
  std::optional<DType> narrowed;  // elements are stored in this 16-bit format, else in their compute type
};

class TileLoader {
 public:
  TileLoader(ExprEmitter& emitter, KernelWriter& writer, int threads)
      : emitter_(emitter), writer_(writer), pool_(emitter.kernel().pool), threads_(threads) {}

  // Axes other than the load's must be bound.
  void load(const TileLoad& load);
  bool copies(const TileLoad& load) const { return load.async && vector_width(load) > 1; }
  int vector_width(const TileLoad& load) const;

 private:
  bool has_indirect_loads(const TileLoad& load) const;  // is its place made of loaded values?
  bool runs_along_lines(const TileLoad& load) const;
  // Eight places of a line by each thread, neighbouring threads with neighbouring lines.
  bool goes_by_eights(const TileLoad& load) const;
  void load_eights(const TileLoad& load);
  std::string line_of(const TileLoad& load, int width, const std::string& e) const;
  bool takes_eight_lines(const TileLoad& load, int width) const;
  int units_at_a_time(const TileLoad& load, int width) const;
  // The loop over a thread's accesses, and which line and place each is of.
  void open_accesses(const TileLoad& load, int width, const std::string& line, const std::string& place);
  void bind(const TileLoad& load, const std::string& line, const std::string& place);
  struct Element {
    std::string at, along;  // where it is along the load's axes
    std::string inside;     // what must hold for it to be there
  };
  Element declare_element(const TileLoad& load, const std::string& line, const std::string& place);
  std::string declare_one(const TileLoad& load, const Element& element);
  std::string element(const TileLoad& load);

  ExprEmitter& emitter_;
  KernelWriter& writer_;
  const ExprPool& pool_;
  int threads_;
};

}  // namespace fusec
