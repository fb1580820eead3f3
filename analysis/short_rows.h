// Many short rows that begin within sectors of memory: as they follow one another there, a block takes some of them in
// one piece, 16 bytes at a time, into shared memory, in which they lie as values of the compute type. A few lanes take
// a row there, what is stored goes back the same way, and vectors that all rows share are read once a block.
//
//   16 rows of 33     x[528 * block .. + 528]  ->  x_tile  ->  4 lanes a row: elements 0 .. 7, 8 .. 15, 16 .. 23, 24 ..
//   32
//                     y[528 * block .. + 528]  <-  y_tile  <-
//
// A row's even factor divides it into pieces of odd length, and where a lane begins in its piece is so chosen that the
// lanes of a warp, which go on side by side, are in different banks: at equal distances, or at others where some lanes
// would have far more elements than the rest (4 lanes of 49 elements: 0, 16, 24, 40). Where that cannot be, a warp
// takes a row.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/row_form.h"
#include "analysis/target.h"
#include "ir/graph.h"

namespace fusec {

struct ShortRows {
  // Elements in shared memory: of the block's rows, or of one vector beside them.
  struct Tile {
    ValueId value = kNone;  // where they come from; kNone: only stored
    DType dtype = DType::kFloat32;
    ScalarType type = ScalarType::kFloat32;
    bool beside = false;
    std::int64_t first = 0;  // beside: the position of the row's first element
    int place = 0;           // elements from the beginning of shared memory
    friend bool operator==(const Tile&, const Tile&) = default;
  };
  static constexpr std::size_t kNoTile = ~std::size_t{0};

  int length = 1;  // of a row
  int piece = 1;   // its greatest odd factor
  int lanes_of_piece = 1;
  int step = 1;             // lane i begins at element i * step of its piece
  std::vector<int> begins;  // or at these, of which the last is the piece's end
  int stride = 1;           // and goes on by so many
  int turns = 1;            // elements of a lane, at most
  int rows = 32;            // of a block
  int elements = 0;         // of all tiles
  std::vector<Tile> tiles;
  std::map<ExprId, std::size_t> tile_of;  // of loads
  std::vector<std::size_t> stored;        // by output: its tile; kNoTile where it has an element a row

  int lanes() const { return length / piece * lanes_of_piece; }
  int threads() const { return rows * lanes(); }
  int least_turns() const;  // elements of a lane, at least
};

// The ways to take such rows, the best first as predicted; none where rows are not such.
std::vector<ShortRows> short_rows(const RowForm& form, const Graph& graph, const Target& target);

std::string name_of(const ShortRows& way);

}  // namespace fusec
