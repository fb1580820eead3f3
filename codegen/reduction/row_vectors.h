// Splits the contiguous axis of a row form into 16-byte vectors and lanes.
//
//   aligned rows     x[r * 4096 + k]  ->  x[r * 4096 + 4 * v + e]
//   unaligned rows   x[r * 4095 + k]  ->  x[4 * v + e], where v numbers the vectors of the whole tensor; the elements
//                                         at a row's ends are taken one by one
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "schedule/reduction/row_form.h"

namespace fusec {

// How the contiguous axes were split.
struct RowSplit {
  std::vector<std::uint32_t> reduction;  // reduction axes after the split; empty if none was split
  int reduction_width = 1;
  int column_width = 1;
  // Unaligned rows: the start (over the axes of rows) and the length of a row, in elements. The split axes then number
  // the vectors of the tensor, and both widths are equal.
  std::optional<IndexExpr> start, length;
  // Accesses or values depend on the position within the row, so elements at a row's ends must be bound as lanes of
  // vectors.
  bool exact_ends = false;
};

// Returns the form with its axes split, and fills in `split`.
RowForm split_vectors(const RowForm& form, const Graph& graph, RowSplit& split);

}  // namespace fusec
