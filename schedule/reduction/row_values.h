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

  // The numbers of the nodes below the roots of one of the loops. Axes are replaced by those of the first loop of its
  // width and extents.
  std::map<ExprId, std::uint32_t> in_loop(const RowLoop& loop, const std::vector<RowLoop>& loops);

  const RowForm& form() const { return form_; }

 private:
  const RowForm& form_;
  const Graph& graph_;
  const ExprPool& pool_;
  Dependences depends_;
  std::map<std::string, std::uint32_t> numbers_;
};

// The values of a row's loops by number, each with the first loop that computes it and the last one that needs it
// again.
struct RowValueSpans {
  struct Span {
    std::size_t first, last;
    bool is_kept() const { return last > first; }
    bool is_kept_after(std::size_t loop) const { return first <= loop && last > loop; }
  };
  std::vector<std::map<ExprId, std::uint32_t>> computed;  // by loop
  std::map<std::uint32_t, Span> spans;                    // by number
};
// `iterations`: by loop; loops with none keep nothing.
RowValueSpans spans_of_values(RowValues& values, const std::vector<RowLoop>& loops, const std::vector<int>& iterations);

// Instructions in the text per element, over all loops of the row, with loads, stores and reductions. Values shared by
// loops count once, or in each loop if `recomputed`.
int code_of_row(const RowForm& form, const Graph& graph, bool recomputed = false);

// Special functions per element over all loops (operation_work's `special`). Values shared by loops count once, or in
// each loop if `recomputed`.
double functions_of_row(const RowForm& form, const Graph& graph, bool recomputed = false);

// True for a constant, a position in the row, or a conversion of one. These are recomputed, never kept.
bool is_position(const ExprPool& pool, ExprId id);

// The largest number of values per element that are kept from one loop to the next if nothing is recomputed.
int values_between_loops(const RowForm& form, const Graph& graph);

}  // namespace fusec
