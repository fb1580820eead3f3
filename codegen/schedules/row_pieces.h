// Rows of what only moves elements, as pieces: a line of a tensor, forwards, backwards or one element of it again and
// again, or a constant. They begin at the same columns in all rows; what they are of a row's number tells.
//
//   y[i, j] = 1 <= i < 113 && 1 <= j < 113 ? x[i - 1, j - 1] : 0     columns 0 | 1 .. 112 | 113
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/kernel.h"
#include "ir/graph.h"

namespace fusec {

struct RowPiece {
  IndexExpr begin, end;  // columns
  // What the value is chosen from here: constants, and loads that are guarded and then 0.
  std::vector<ExprId> leaves;
  int step = 1;           // of the loads' places from column to column: -1, 0 or 1
  bool constant = false;  // always one and the same
  // The load that it is in every row, where rows lie evenly: so many elements behind the one before.
  ExprId line = kNoExpr;
  IndexExpr apart = 0;
};

struct RowPieces {
  Kernel kernel;  // the result's axes: rows' and a column
  std::vector<std::uint32_t> rows;
  std::uint32_t column = 0;
  IndexExpr row_count, length;
  std::vector<RowPiece> pieces;
};

// Nothing where anything is computed, or rows are cut at columns that differ.
std::optional<RowPieces> pieces_of_rows(const Kernel& kernel, const Graph& graph);

// What a condition is everywhere in a piece, if that does not depend on the row.
std::optional<bool> known_in_piece(const RowPieces& rows, const RowPiece& piece, ExprId condition);
// The place of a load in its tensor, at a piece's first column.
IndexExpr place_in_piece(const RowPieces& rows, const RowPiece& piece, const Graph& graph, ExprId load);

}  // namespace fusec
