// What a thread keeps of its row in registers, so that memory is read once: loads that several of the loops over a row
// make at the same places.
//
//   max over k of x[r, k];  sum over k of exp(x[r, k] - max);  y[r, j] = exp(x[r, j] - max) / sum
//     ->  x_row[i] is filled in the first loop, at k = lane + i * team, and read in the two others
//
// Loops whose trip count is not known, or too long for registers, read again.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/schedules/row_form.h"
#include "ir/graph.h"

namespace fusec {

// A loop over a row: its axes, the lanes of a vector last where `width` > 1, and what is computed in it.
struct RowLoop {
  std::vector<std::uint32_t> axes;
  int width = 1;
  std::vector<ExprId> roots;
};

struct RowRegisters {
  struct Slot {
    ExprId load;  // one of those that it stands for
    int width;    // elements a turn
    int turns;
    std::string name;     // of the array, once it is declared
    bool filled = false;  // some loop has loaded it
  };
  std::vector<Slot> slots;
  std::map<ExprId, std::size_t> slot_of;               // of each load that is kept
  std::map<std::vector<std::uint32_t>, int> turns_of;  // of the loops over these axes; others are ordinary loops
};

// `parts` threads share a row, `threads` are a block's. Loops are given in the order in which they run.
RowRegisters plan_row_registers(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops, int parts,
                                int threads);

// What the roots need, without what the form's row reductions need inside.
std::vector<ExprId> outside_reductions(const RowForm& form, const std::vector<ExprId>& roots);

}  // namespace fusec
