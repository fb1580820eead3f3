// Emits rows shared by co-resident blocks. Each of n ordinary blocks keeps its part of a row, and they reduce the row
// within one kernel through scratch memory (codegen/prelude/resident_blocks.cu, cohort_reduce):
//
//   rank = ticket % n;  row = ticket / n;                 tickets are given in the order in which blocks start
//   partial[row * n + rank] = the block's result;         separate memory for each reduction
//   arrived[1 + row] += 1;  until that is n, 2 n, ...     release and acquire; n more for each reduction
//   combine partial[row * n], ..., partial[row * n + n - 1]
//
// The launch need not be cooperative: a block waits only for blocks with earlier tickets and for the next n - 1. Those
// start as long as the device has room for n blocks at once; schedule/reduction/blocks_per_row bounds n by the number
// of multiprocessors. A one-block kernel clears the counters first.
#pragma once

#include <string>

#include "codegen/expr/kernel_source.h"
#include "codegen/expr/kernel_writer.h"
#include "ir/graph.h"
#include "schedule/reduction/row_form.h"

namespace fusec {

// Adds the scratch memory of the counters, next to that of partial results (row_partials), and returns its name. It
// holds the next ticket, then for each row the number of blocks that have arrived.
std::string resident_block_counters(KernelWriter& writer, const RowForm& form);

// The kernel that clears the counters; it runs first.
KernelSource clear_counters(const RowForm& form, const Graph& graph, bool wide);

}  // namespace fusec
