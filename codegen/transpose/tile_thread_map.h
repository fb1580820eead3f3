// A box of points, several elements of several axes, as one tensor has it in memory (codegen/transpose/tiled_permute):
// lines, each of them one stretch, and how a block's threads go through these.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/transpose/tile_grid.h"
#include "ir/bounds.h"
#include "ir/index_expr.h"

namespace fusec {

// How one tensor has the box in memory.
struct TileLayout {
  std::vector<std::size_t> run;       // of the box's axes those that one stretch goes along, the fastest first
  std::vector<std::size_t> lines;     // the others of which it has several elements, the fastest first
  std::vector<std::int64_t> strides;  // elements, of each of the box's axes; 0 where it does not depend on it
  std::vector<IndexExpr> steps;       // the same where a launch's sizes decide; `strides` are at hints then
  int aligned = 1;                    // bytes, up to a sector, that the beginnings of all stretches are multiples of
  int from = 32;                      // bytes: threads take a stretch from a multiple of so many on
  int lanes = 0;  // neighbouring threads that take items of a stretch, the next ones those of the next; 0: all of it
};

// From one element of the axis to the next, where it is always as far and the same way, whatever the launch's sizes.
std::optional<IndexExpr> step_along(const IndexExpr& position, std::uint32_t axis, const Bounds& bounds);

std::int64_t ceil_quotient(std::int64_t a, std::int64_t b);

// Elements of a box.
std::int64_t point_count(const std::vector<TiledAxis>& axes);
// Elements of a word of the result.
int elements_of_word(int element_bits);
// Elements of a stretch, from its first to its last.
std::int64_t run_elements(const TileLayout& layout, const std::vector<TiledAxis>& axes);
std::int64_t line_count(const TileLayout& layout, const std::vector<TiledAxis>& axes);
// So many bytes from a multiple of `from` on, a multiple of that, hold any stretch of the box.
int line_bytes(const TileLayout& layout, const std::vector<TiledAxis>& axes, int element_bits);

// How threads go through the items of several lines, words or vectors: as many lines at a time as there are threads
// for, some lanes to each, mostly as many as it has items; a line after the other; or one item after the other,
// whatever its line.
struct TileThreadMap {
  enum class Traversal { kLinesAtOnce, kLineByLine, kFlat };
  Traversal traversal = Traversal::kFlat;
  std::int64_t lines = 1;
  int of_line = 1, threads = 1;
  int lanes = 1;    // to a line, where several are taken at once
  double busy = 1;  // of the threads

  int lines_at_once() const { return threads / lanes; }
  int iterations_of_line() const { return (of_line + lanes - 1) / lanes; }
};
// `lanes`: to a line; 0: as many as it has items, or whatever keeps threads busy.
TileThreadMap thread_map_for(std::int64_t lines, int of_line, int threads, int lanes);

// Of the items as threads take them one after the other, where several lines are taken at once: the line and the item's
// number in it, either of which may be beyond the last.
struct TileItem {
  std::int64_t line;
  int place;
};
TileItem item_at(const TileThreadMap& items, std::int64_t number);

}  // namespace fusec
