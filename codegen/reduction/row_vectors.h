// A row form whose loops take vectors of 16 bytes: the axis along which memory runs becomes two, vector and lane.
//
//   rows that begin at multiples of the vector   x[r * 4096 + k]  ->  x[r * 4096 + 4 * v + e]
//   rows that begin anywhere                     x[r * 4095 + k]  ->  x[4 * v + e], where v numbers the vectors of
//                                                memory; the elements at a row's ends are taken one by one
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "schedule/reduction/row_form.h"

namespace fusec {

// The kernel with the last of these axes walked in groups of `width`.
struct RowSplit {
  std::vector<std::uint32_t> reduction;  // axes of the reductions that were split, afterwards; empty: none
  int reduction_width = 1;
  int column_width = 1;
  // Rows that begin anywhere in memory, not at a multiple of the width: where (over the rows' axes), and how long they
  // are. The split axes then number the vectors of memory, and both widths are one.
  std::optional<IndexExpr> start, length;
  // Accesses or values ask which element of its row an element is, so that a row's ends have to be bound as the lanes
  // of vectors that they are.
  bool exact_ends = false;
};

// The form with its axes split, and how.
RowForm split_vectors(const RowForm& form, const Graph& graph, RowSplit& split);

}  // namespace fusec
