// Fills a tile in shared memory with the values of an expression along some axes: a GEMM operand with its prologue.
// Elements beyond the ends of the axes are 0.
//
//   tile[line][place] = operand(line0 + line, place)
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"

namespace fusec {

struct TileLoad {
  std::string tile;  // a pointer to shared memory
  int stride = 0;    // elements from line to line
  int lines = 0, places = 0;
  ExprId operand = kNoExpr;
  std::vector<std::uint32_t> line_axes, position_axes;
  std::string line0;                 // index of the first line along its axes
  std::string place0 = "";           // index of the first place; "": the tile has all places
  int unrolled = 0;                  // elements per iteration if no access has several; 0: the compiler chooses
  static constexpr int kToFit = -1;  // of `unrolled`: as many as NVRTC compiles in time
  bool async = false;                // cp.async copies unchanged elements until wait_for_copies
  std::optional<DType> narrowed;     // 16-bit format of stored elements; nullopt: their compute type
  // Defines further values that an element needs, for the names of its line and place; returns a further condition that
  // it exists, or "".
  std::function<std::string(const std::string& line, const std::string& place)> more = nullptr;
};

class TileLoader {
 public:
  TileLoader(ExprEmitter& emitter, KernelWriter& writer, int threads)
      : emitter_(emitter), writer_(writer), pool_(emitter.kernel().pool), threads_(threads) {}

  // Axes other than those of the load must be bound.
  void load(const TileLoad& load);
  bool copies(const TileLoad& load) const { return load.async && vector_width(load) > 1; }
  int vector_width(const TileLoad& load) const;

 private:
  bool has_indirect_loads(const TileLoad& load) const;  // the position depends on loaded values
  // True if loads along the lines touch fewer sectors than loads along the places of a line, or if some load of 16-bit
  // elements is contiguous from line to line.
  bool runs_along_lines(const TileLoad& load) const;
  int sectors_of_warp(ExprId id, const TileLoad& load, bool along_lines) const;
  std::int64_t hint(std::uint32_t axis) const;  // its extent
  // Each thread loads eight places of a line; neighbouring threads load neighbouring lines.
  bool loads_columns_of_eight(const TileLoad& load) const;
  void load_columns_of_eight(const TileLoad& load);
  void load_vectors(const TileLoad& load, int width);
  std::string line_of(const TileLoad& load, int width, const std::string& e) const;
  bool loads_eight_lines(const TileLoad& load, int width) const;
  int units_at_a_time(const TileLoad& load, int width) const;
  // Opens the loop over a thread's accesses and declares their line and place.
  void open_accesses(const TileLoad& load, int width, const std::string& line, const std::string& place);
  void bind(const TileLoad& load, const std::string& line, const std::string& place);
  struct Element {
    std::string at, along;  // indices along the axes of the load
    std::string inside;     // condition that the element exists
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
