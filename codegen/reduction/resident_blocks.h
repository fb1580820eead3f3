// A cohort: so many ordinary blocks share a row, each of which keeps its part of it, and reduce it together within one
// kernel, through scratch memory (codegen/prelude/rows.cu, cohort_reduce):
//
//   rank = ticket % n;  row = ticket / n;                 tickets are given in the order in which blocks begin
//   partial[row * n + rank] = what the block has;         a place of its own for each reduction
//   arrived[1 + row] += 1;  until that is n, 2 n, ...     released and acquired; n more for each reduction
//   combine partial[row * n], ..., partial[row * n + n - 1]
//
// No launch has to be cooperative: a block waits for such as have taken their tickets before it, and for the next n
// - 1. These begin as long as there is place for n blocks at once, whatever others do:
// schedule/reduction/blocks_per_row bounds n by the device's multiprocessors. Counters are 0 before the kernel: a
// kernel of one block clears them.
#pragma once

#include <string>

#include "codegen/expr/kernel_source.h"
#include "codegen/expr/kernel_writer.h"
#include "ir/graph.h"
#include "schedule/reduction/row_form.h"

namespace fusec {

// Scratch memory beside that of partial results (row_partials): the ticket that is next, then for each row how many
// blocks have come. Its name.
std::string resident_block_counters(KernelWriter& writer, const RowForm& form);

// The kernel before it.
KernelSource clear_counters(const RowForm& form, const Graph& graph, bool wide);

}  // namespace fusec
