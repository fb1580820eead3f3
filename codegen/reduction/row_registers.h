// What a thread keeps of its row in registers, so that memory is read once and nothing is computed twice: what several
// of the loops over a row need at the same places.
//
//   max over k of x[r, k];  sum over k of exp(x[r, k] - max);  y[r, j] = exp(x[r, j] - max) / sum
//     ->  x_row[i] is filled in the first loop, at k = lane + i * team, and read in the second, which fills t_row[i]
//         with the exponentials for the third
//
// Where values take too many registers (16-bit elements are twice as many then), loads alone are kept, as they lie in
// memory, and the compiler is kept from keeping more; or what takes most to compute, likewise. Where that takes
// registers that ptxas needs to compute, each thread has its elements in shared memory instead. Of rows that do not fit
// there either the first turns are kept, and the others read again. Loops whose trip count is not known, or too long,
// read again.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "schedule/reduction/row_form.h"

namespace fusec {

// A loop over a row: its axes, the lanes of a vector last where `width` > 1, and what is computed in it.
struct RowLoop {
  std::vector<std::uint32_t> axes;
  int width = 1;
  std::vector<ExprId> roots;
  std::optional<IndexExpr> vectors = std::nullopt;  // of a row, at most, where the axes number those of all rows
  bool joins = false;  // takes the vectors of what a concat joins as those of one tensor (codegen/access/concat_loads)
};

struct RowRegisters {
  struct Slot {
    ExprId expr;  // one of those that it stands for
    int width;    // elements a turn
    int iterations;
    bool words;                       // a load's elements as they lie in memory, else values of the compute type
    int words_of_element;             // of a turn of a load that is kept so, or of a value: 32 bits each
    std::size_t first = 0, last = 0;  // loops that need it
    int place = 0;                    // in shared memory: words of a thread before it
    std::string name = "";            // of the array, once it is declared
    std::string edge = "";            // of the element before or behind the vectors, once it is declared
    bool filled = false;              // some loop has computed it
  };
  std::vector<Slot> slots;
  std::map<ExprId, std::size_t> slot_of;                    // of each expression that is kept
  std::map<std::vector<std::uint32_t>, int> iterations_of;  // of the loops over these axes; others are ordinary loops
  int words = 0;                                            // that a thread keeps at once, at most
  int code = 0;                                             // instructions of the loops whose turns are unrolled
  int wanted = 0;                  // words of all values that loops need once more: ptxas may keep them beside these
  int reloads = 0;                 // loads that several loops make
  int shared_words = 0;            // of a thread; 0: nothing is in shared memory
  IndexExpr shared_bytes = 0;      // of a block: where lengths are known at launch alone, no more than theirs take
  bool keeps_prefix_only = false;  // rows are longer than these turns: the rest is read again

  int words_of(const Slot& slot) const {
    return slot.iterations * (slot.words ? 1 : slot.width) * slot.words_of_element;
  }
};

// `parts` threads share a row, `threads` are a block's. Loops are given in the order in which they run.
RowRegisters plan_row_registers(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops, int parts,
                                int threads);

// Of rows that a team takes one after the other, by a thread that has many registers: loads alone, as they lie in
// memory, with those that rows share, which are made once for all of them.
RowRegisters plan_sequential_rows(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops,
                                  int parts);

// Values alone, where registers have room for all that loops need once more.
std::optional<RowRegisters> plan_row_values(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops,
                                            int parts, int threads);

// The same in so many bytes of a block's shared memory; of rows that do not fit, the first turns. Nothing where that
// keeps nothing. `as_loaded`: loads alone, as they lie in memory.
std::optional<RowRegisters> plan_row_in_shared_memory(const RowForm& form, const Graph& graph,
                                                      const std::vector<RowLoop>& loops, int parts, int threads,
                                                      std::int64_t bytes, bool as_loaded = false);

}  // namespace fusec
