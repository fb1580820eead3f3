// Fuses a kernel that reduces rows with kernels that reduce columns of the same tensors, so that everything is read
// once:
//
//   dx[r, c] = f(dy[r, c], x[r, c], sum_k g[r, k])      dw[c] = sum_r dy[r, c] * xhat[r, c]
//
// Each block takes several rows, one after the other. It computes f for a row and adds dy * xhat to partial sums that
// its threads keep per column. At the end each block writes one line of partial sums to scratch memory, and a second
// launch adds these lines. All additions have a fixed order.
//
// The column kernel's operands must be made of tensors that the row kernel reads or makes, at the same elements or
// rows. Values that the row kernel stored only for the column kernel are no longer stored.
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
  // The kernel of rows, with one row axis and one column axis. After its own outputs it has one output per column
  // reduction: the element to add, which is folded and not stored.
  RowForm rows;
  std::size_t folded = 0;  // number of folded outputs
  RowForm columns;         // one kernel of all column reductions
  RowLayout layout;        // layout of `rows`; `blocks` is set
  int elements = 0;        // elements of a row per thread
  Work work;               // work of both launches
};

KernelSignature signature_of(const CrossRowReduction& cross_row, const Graph& graph);

// A kernel of rows and the column kernels that are predicted to run faster fused with it than next to or after it.
struct CrossRowUnits {
  std::uint32_t rows;
  std::vector<std::uint32_t> columns;
  std::vector<ValueId> unstored;  // outputs of the row kernel that nobody else needs
  CrossRowReduction cross_row;

  bool has_column_unit(std::uint32_t u) const { return std::ranges::find(columns, u) != columns.end(); }
  std::vector<NodeId> nodes(const std::vector<LoweredUnit>& units) const;  // nodes of all these units
};
std::vector<CrossRowUnits> cross_row_units(const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                                           const Graph& graph, const Target& target);

}  // namespace fusec
