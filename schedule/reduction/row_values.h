// Value numbering of the loops over a row. Equal expressions in loops of one kind get the same number, whatever the
// loops' axes are.
//
//   max over k of tanh(x[r, k]);  y[r, j] = tanh(x[r, j]) - max     tanh(x[r, k]) and tanh(x[r, j]) are equal
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "schedule/reduction/row_form.h"

namespace fusec {

class RowValues {
 public:
  RowValues(const RowForm& form, const Graph& graph);

  // True if the value depends on an axis of the loop.
  bool runs_along(ExprId id, const std::vector<std::uint32_t>& axes) const;

  // The numbers of the nodes below a loop's roots. `kind`: the axes of the first loop of this kind, which replace its
  // own.
  std::map<ExprId, std::uint32_t> in_loop(const std::vector<ExprId>& roots, const std::vector<std::uint32_t>& axes,
                                          const std::vector<std::uint32_t>& kind);

 private:
  const RowForm& form_;
  const Graph& graph_;
  const ExprPool& pool_;
  std::vector<std::vector<std::uint32_t>> depends_;
  std::map<std::string, std::uint32_t> numbers_;
};

// Instructions in the text per element, over all loops of the row, with loads, stores and reductions. Values shared by
// loops count once, or in each loop if `recomputed`.
int code_of_row(const RowForm& form, const Graph& graph, bool recomputed = false);

// Special functions per element over all loops (operation_work's `special`). Values shared by loops count once.
double functions_of_row(const RowForm& form, const Graph& graph);

// True for a constant, a position in the row, or a conversion of one. These are recomputed, never kept.
bool is_position(const ExprPool& pool, ExprId id);

// The largest number of values per element that are kept from one loop to the next if nothing is recomputed.
int values_between_loops(const RowForm& form, const Graph& graph);

}  // namespace fusec
