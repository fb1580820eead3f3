// What the loops over a row compute, numbered: equal expressions of loops of one kind, whatever their axes are called,
// have one number.
//
//   max over k of tanh(x[r, k]);  y[r, j] = tanh(x[r, j]) - max     tanh(x[r, k]) and tanh(x[r, j]) are one
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

  // Does an axis of the loop change it?
  bool runs_along(ExprId id, const std::vector<std::uint32_t>& axes) const;

  // Of what the roots of a loop need. `kind`: the axes of the first loop like this one, which stand for its own.
  std::map<ExprId, std::uint32_t> in_loop(const std::vector<ExprId>& roots, const std::vector<std::uint32_t>& axes,
                                          const std::vector<std::uint32_t>& kind);

 private:
  const RowForm& form_;
  const Graph& graph_;
  const ExprPool& pool_;
  std::vector<std::vector<std::uint32_t>> depends_;
  std::map<std::string, std::uint32_t> numbers_;
};

// Instructions that stand in the text for an element in all loops over the row, with those that load, store and reduce
// it: what several need is computed once, and kept, or `anew` in each.
int code_of_row(const RowForm& form, const Graph& graph, bool recomputed = false);

// Functions of an element in all loops (operation_work's `special`), what several need once.
double functions_of_row(const RowForm& form, const Graph& graph);

// A constant, a place along the row or such a place as another type: made anew rather than kept.
bool is_place(const ExprPool& pool, ExprId id);

// Values of an element that are kept from one loop to the next so that nothing is computed twice, at most.
int values_between_loops(const RowForm& form, const Graph& graph);

}  // namespace fusec
