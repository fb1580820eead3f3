// A few rows whose elements take turns in memory: what is reduced lies as many elements apart as there are rows.
//
//   sum over i of x[i, c], c of 3       x: 0 1 2 0 1 2 0 1 2 0 1 2 ...
//
// A team of threads takes all of them at once, in vectors as they lie in memory. As many threads work as make the
// elements of all their vectors a multiple of the rows: then what a thread has at a place of its vectors is always of
// one row, and it keeps a partial result for each place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/row_form.h"
#include "analysis/target.h"
#include "ir/graph.h"

namespace fusec {

struct InterleavedRows {
  std::uint32_t inner = 0;           // the axis that says which of them
  std::vector<std::uint32_t> outer;  // the other rows' axes
  int rows = 2;
  int width = 1;              // elements of a vector
  int team = 256;             // threads that take the rows at one place of the outer axes
  int teams = 1;              // of a block
  int parts = 256;            // threads of a team that work
  int chunks = 1;             // blocks that share what a team has to do and leave partial results
  int kept_turns = 0;         // vectors of a thread; 0: not known, or too many
  std::vector<ExprId> loads;  // that read one element after the other

  int threads() const { return team * teams; }
};

// Nothing where rows do not lie so.
std::optional<InterleavedRows> interleaved_rows(const RowForm& form, const Graph& graph, const Target& target);

std::string name_of(const InterleavedRows& way);

}  // namespace fusec
