// Rows that are reduced, and beside them reductions of their columns, as one kernel that reads everything once:
//
//   dx[r, c] = f(dy[r, c], x[r, c], sum_k g[r, k])      dw[c] = sum_r dy[r, c] * xhat[r, c]
//     ->  a block takes rows one after the other, as f wants them, and adds dy * xhat of each to sums that its threads
//         keep for their columns; what a block has at the end is a line of scratch memory: a second launch adds these
//         up
//
// So it may be where the second kernel's rows are the first one's columns, and what it reduces is made of what the
// first one reads, or makes, of its elements and its rows: what is made for this alone is stored no more. All is added
// in a fixed order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/kernel/kernel_signature.h"
#include "schedule/cost/work.h"
#include "schedule/lowering/horizontal_fusion.h"
#include "schedule/lowering/lower_group.h"
#include "schedule/reduction/row_layout.h"

namespace fusec {

struct CrossRowReduction {
  // The kernel of rows, one row axis and one of columns. Behind its outputs stands, for each reduction of `columns`,
  // what that goes over, an element for each of the rows': folded, not stored.
  RowForm rows;
  std::size_t folded = 0;  // of the outputs
  RowForm columns;         // one kernel of all that are folded
  RowLayout layout;        // of `rows`; it has `blocks`
  int elements = 0;        // of a row that a thread has
  Work work;               // of both launches
};

KernelSignature signature_of(const CrossRowReduction& cross_row, const Graph& graph);

// Units that are predicted to be faster so than beside one another, or one after the other. Nothing else stands between
// them.
struct CrossRowUnits {
  std::uint32_t rows;
  std::vector<std::uint32_t> columns;
  std::vector<ValueId> unstored;  // of what the rows' unit stores: nobody else needs it
  CrossRowReduction cross_row;

  bool has_column_unit(std::uint32_t u) const { return std::ranges::find(columns, u) != columns.end(); }
  std::vector<NodeId> nodes(const std::vector<LoweredUnit>& units) const;  // of all
};
std::vector<CrossRowUnits> cross_row_units(const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                                           const Graph& graph, const Target& target);

}  // namespace fusec
