// Rows that are pieces of lines (analysis/interleaved_rows) in some tensors and lie the other way round in others: an
// element of all lines follows that of the line before. Such tensors come and go through shared memory, in which a
// block has its lines as they lie elsewhere.
//
//   group norm of x[n, p, c], stored as y[n, c, p]
//
//   160 of x's c, 256 lines p   ->   registers, statistics   ->   a tile of 256 lines   ->   160 of y's lines, 256 of p
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/row_form.h"
#include "analysis/target.h"
#include "ir/graph.h"

namespace fusec {

struct InterleavedRows;

struct TurnedLines {
  ValueId value = kNone;
  DType dtype = DType::kFloat32;
  IndexExpr start = 0;  // the position of the first line's first element
  IndexExpr pitch = 1;  // elements from one of a line to the next
  int vector = 1;       // lines of an access to memory
  int lanes = 1;        // of a warp, that take vectors of one of the lines' elements
  int words = 0;        // of shared memory, from a line to the next
  int skew = 0;         // words left out behind every `vector` lines
  int place = 0;        // words from the beginning of shared memory
  int bytes() const;    // of an element
  bool operator==(const TurnedLines&) const = default;
};

// The form with columns and reductions that go over the lines first, then over a row's elements of each; nothing where
// they are not two such axes. `pieces`: the column that numbers a row's elements of a line.
std::optional<RowForm> over_lines(const RowForm& form, std::uint32_t pieces);

// How a position lies so, of which `line` numbers lines, `inner` rows of `breadth` elements each, `piece` those.
std::optional<TurnedLines> turned_lines(const IndexExpr& at, std::uint32_t line, std::uint32_t inner,
                                        std::int64_t breadth, std::uint32_t piece, const Bounds& bounds);

// Gives each block of a strip that is kept as many lines that follow one another, and the turned ones their places in
// shared memory. False where that has no room.
bool keep_turned_lines(InterleavedRows& way, const Target& target);

// The same of what is read again: some lines at a time.
bool stream_turned_lines(InterleavedRows& way);

}  // namespace fusec
