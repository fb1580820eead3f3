// Rows that lie across memory in some tensors and along it in others: a norm of what has been permuted, a softmax whose
// result is stored transposed. A block takes some rows that are neighbours where they lie across memory, all of each:
// what is read comes through shared memory, in which every row's elements follow one another, and what is stored across
// memory goes back the same way.
//
//   y[p, k] = x[k, p] / sum over k of x[k, p]
//
//   lines of x, 32 places of each    ->    32 rows of words    ->    a few lanes a row, 16 bytes of y to a lane
//
// Rows that a concat joins (a class token before patches) are each in their own tile; blocks' rows begin where the
// vectors do of what lies across memory.
//
// Words of shared memory hold neighbours along the row (two elements of 16 bits, four of 8). `lanes` of a warp take
// vectors of one line, the others of the next words of the rows; where rows begin is so chosen that neither they nor
// the lanes of a row meet in a bank.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "schedule/reduction/row_form.h"
#include "schedule/target/target.h"

namespace fusec {

struct TransposedRowReduction {
  enum class Orientation : std::uint8_t {
    kAcross,     // neighbouring rows' elements are neighbours
    kAlong,      // a row's are
    kBroadcast,  // one vector for all rows of a block
  };
  // Elements in shared memory, as they are in memory.
  struct Tile {
    ValueId value = kNone;  // where they come from
    DType dtype = DType::kFloat32;
    Orientation orientation = Orientation::kAcross;
    IndexExpr start = 0;  // the position of a row's first element
    IndexExpr pitch = 1;  // across: elements from one of the row to the next; along: from one row to the next
    int vector = 1;       // elements of an access to memory
    int place = 0;        // words from the beginning of shared memory
    // The rows that have one: what a concat joins along the rows is of some of them.
    std::int64_t from = 0;
    std::optional<std::int64_t> until;
    int bytes() const;  // of an element
  };
  // Of all tiles whose elements have so many bytes.
  struct Grid {
    int vector = 1;  // rows of an access across memory
    int lanes = 1;   // of a warp, that take vectors of one line
    int pitch = 0;   // words from a row to the next
    int skew = 0;    // words left out behind every `vector` rows
  };
  RowForm form;
  std::uint32_t inner = 0;           // the axis that numbers neighbours
  std::vector<std::uint32_t> outer;  // the other rows' axes
  int leading_rows = 0;              // rows that a block would have before the first: others begin at whole vectors
  int length = 1;                    // of a row
  int rows = 32;                     // of a block
  int width = 1;                     // elements of a lane at a time
  int lanes = 32;                    // of a row
  int threads = 256;
  int words = 0;  // of shared memory
  std::vector<Tile> tiles;
  std::map<int, Grid> grids;              // by bytes of an element
  std::map<ExprId, std::size_t> tile_of;  // of loads
  // By output: those that are stored across memory, or along it where rows begin anywhere.
  std::vector<std::optional<Tile>> results;
  // Of such: whose place it takes. Who writes an element there is the only one to read it.
  std::map<std::size_t, std::size_t> reuses_tile_of;
  double sector_overfetch = 1;  // bytes of the sectors that are asked for, over those of the elements

  const Grid& grid(const Tile& tile) const { return grids.at(tile.bytes()); }
  int iterations() const { return (length / width + lanes - 1) / lanes; }
  IndexExpr extent() const { return form.kernel.pool.extent(inner); }
  IndexExpr strips() const { return ceil_div(extent() + leading_rows, rows); }  // of neighbouring rows, a block each
};

// Blocks of the grid, with symbols at their hints.
std::int64_t blocks_of(const TransposedRowReduction& plan);

// The ways to take such rows, the best first as predicted; none where rows are not such.
std::vector<TransposedRowReduction> transposed_row_reduction(const RowForm& form, const Graph& graph,
                                                             const Target& target);

std::string name_of(const TransposedRowReduction& plan);

}  // namespace fusec
