// Plans row reductions over rows that are strided in some operands and contiguous in others: a norm of a permuted
// tensor, a softmax with a transposed result. A block takes all elements of some rows that are neighbours in the
// strided operands. Operands go through shared memory, where every row is contiguous. Strided results go back the same
// way.
//
//   y[p, k] = x[k, p] / sum over k of x[k, p]
//
//   lines of x, 32 elements of each  ->    32 rows of words    ->    a few lanes per row, 16 bytes of y per lane
//
// Rows joined by a concat (a class token before patches) have separate tiles. Blocks start at vector boundaries of the
// strided operands.
//
// A word of shared memory holds neighbours along the row (two 16-bit elements, or four 8-bit ones). `lanes` lanes of a
// warp take vectors of one line, the others take the next words of the rows. The row pitch avoids bank conflicts both
// for these lanes and for the lanes of a row.
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
    kAcross,     // strided: neighbouring rows are contiguous
    kAlong,      // a row is contiguous
    kBroadcast,  // one vector for all rows of a block
  };
  // A tensor in shared memory, in its storage type.
  struct Tile {
    ValueId value = kNone;  // source tensor; kNone: only stored
    DType dtype = DType::kFloat32;
    Orientation orientation = Orientation::kAcross;
    IndexExpr start = 0;  // position of a row's first element
    IndexExpr pitch = 1;  // kAcross: elements between neighbours of a row; kAlong: between rows
    int vector = 1;       // elements per memory access
    int place = 0;        // offset in shared memory, in words
    // The range of rows that have the tile; with a concat along the rows, each operand has some of them.
    std::int64_t from = 0;
    std::optional<std::int64_t> until;
    int bytes() const;  // per element
  };
  // The layout of all tiles with one element size.
  struct Grid {
    int vector = 1;  // rows per strided access
    int lanes = 1;   // lanes of a warp that take vectors of one line
    int pitch = 0;   // words from a row to the next
    int skew = 0;    // padding words after every `vector` rows
  };
  RowForm form;
  std::uint32_t inner = 0;           // axis of neighbouring rows
  std::vector<std::uint32_t> outer;  // the other axes of rows
  int leading_rows = 0;              // rows before row 0 in the first block, which align the other blocks to vectors
  int length = 1;                    // elements of a row
  int rows = 32;                     // per block
  int width = 1;                     // elements per lane at a time
  int lanes = 32;                    // per row
  int threads = 256;
  int words = 0;  // of shared memory
  std::vector<Tile> tiles;
  std::map<int, Grid> grids;              // by bytes per element
  std::map<ExprId, std::size_t> tile_of;  // by load
  // By output: the tile of a strided result, or of a contiguous result with unaligned rows.
  std::vector<std::optional<Tile>> results;
  // Result tile -> the operand tile that it replaces in shared memory. The thread that writes an element is the only
  // one that reads it.
  std::map<std::size_t, std::size_t> reuses_tile_of;
  double sector_overfetch = 1;  // bytes of the requested sectors divided by bytes of the elements

  const Grid& grid(const Tile& tile) const { return grids.at(tile.bytes()); }
  int iterations() const { return (length / width + lanes - 1) / lanes; }
  IndexExpr extent() const { return form.kernel.pool.extent(inner); }
  // Groups of neighbouring rows, one block each.
  IndexExpr strips() const { return ceil_div(extent() + leading_rows, rows); }
};

// Blocks of the grid, at the symbols' hints.
std::int64_t blocks_of(const TransposedRowReduction& plan);

// The candidates, best predicted first; none if no operand is strided.
std::vector<TransposedRowReduction> transposed_row_reduction(const RowForm& form, const Graph& graph,
                                                             const Target& target);

std::string name_of(const TransposedRowReduction& plan);

}  // namespace fusec
