// Plans which part of a row a thread keeps in registers, so that memory is read once and nothing is computed twice. A
// value is kept if several loops over the row need it at the same places.
//
//   max over k of x[r, k];  sum over k of exp(x[r, k] - max);  y[r, j] = exp(x[r, j] - max) / sum
//     ->  x_row[i] is filled in the first loop, at k = lane + i * parts, and read in the second, which fills t_row[i]
//         with the exponentials for the third
//
// If computed values need too many registers (16-bit elements take twice as many once widened), only loads are kept, in
// their storage type, and the compiler is prevented from keeping more. The same if a second block then fits on a
// multiprocessor, which loads while the first one computes, and memory still takes longer than computing again. If
// ptxas would lack registers even so, each thread keeps its elements in shared memory. If rows do not fit there either,
// the first iterations are kept and the rest is read again. Loops with unknown or very long trip counts keep nothing.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "schedule/reduction/row_form.h"

namespace fusec {

struct RowRegisters {
  struct Slot {
    ExprId expr;  // one of the expressions with this value
    int width;    // elements per iteration
    int iterations;
    bool words;                       // a load's elements in their storage type; otherwise values of the compute type
    int words_of_element;             // 32-bit words per iteration of a load in storage type, or per value
    std::size_t first = 0, last = 0;  // of computed values: first and last loop that needs it
    int place = 0;                    // in shared memory: offset within a thread's words
    std::string name = "";            // of the array, once declared
    std::string edge = "";            // of the edge element's register, once declared
    bool filled = false;              // some loop has computed it
  };
  std::vector<Slot> slots;
  std::map<ExprId, std::size_t> slot_of;  // by kept expression
  // Trip count of the loop over these axes; other loops keep nothing.
  std::map<std::vector<std::uint32_t>, int> iterations_of;
  int words = 0;                   // largest number of 32-bit words that a thread keeps at once
  int code = 0;                    // instructions of the unrolled loops
  int wanted = 0;                  // words of all values that loops reuse; ptxas may keep them in addition
  int reloads = 0;                 // loads that are not kept, though several loops need them
  int shared_words = 0;            // per thread; 0: nothing is in shared memory
  IndexExpr shared_bytes = 0;      // per block; for lengths known only at launch, no more than those need
  bool keeps_prefix_only = false;  // rows are longer than the kept iterations; the rest is read again
  int blocks_at_once = 0;          // per multiprocessor, if the plan is made for so many; else 0

  int words_of(const Slot& slot) const {
    return slot.iterations * (slot.words ? 1 : slot.width) * slot.words_of_element;
  }
};

// `parts`: threads per row. `threads`: threads per block. `loops` are in execution order.
RowRegisters plan_row_registers(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops, int parts,
                                int threads);

// Keeps loads only, in their storage type, if that makes two blocks fit on a multiprocessor which `plan` does not, and
// nothing is read again. `tensors`: that run along the row.
std::optional<RowRegisters> plan_packed_row(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops,
                                            int parts, int threads, int tensors, const RowRegisters& plan);

// For a group that takes rows one after the other, with many registers per thread. Keeps loads only, in their storage
// type, without those that are `elsewhere`. Row-invariant loads are made once for all rows.
RowRegisters plan_sequential_rows(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops, int parts,
                                  int most_words, const std::function<bool(ExprId)>& elsewhere);

// Keeps computed values only, if registers have room for all that loops reuse, else nothing.
RowRegisters plan_row_values(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops, int parts,
                             int threads);

// Keeps those of these loads that several loops need, in `iterations` vectors each and at most `most_words` words.
RowRegisters plan_row_loads(const RowForm& form, const Graph& graph, const std::vector<RowLoop>& loops,
                            const std::vector<ExprId>& loads, int iterations, int most_words);

// Keeps values in at most `bytes` of a block's shared memory; for longer rows, the first iterations. Nothing if none
// fit. `as_loaded`: loads only, in their storage type.
std::optional<RowRegisters> plan_row_in_shared_memory(const RowForm& form, const Graph& graph,
                                                      const std::vector<RowLoop>& loops, int parts, int threads,
                                                      std::int64_t bytes, bool as_loaded = false);

}  // namespace fusec
