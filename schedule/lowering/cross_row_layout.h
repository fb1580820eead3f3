// Chooses how the blocks of a cross-row reduction take rows: a warp per row if it can keep what it needs of a row, or a
// block per row; and how many blocks a multiprocessor has.
//
//   4096 rows, 132 multiprocessors       8 warps a block and two blocks a multiprocessor take 2112 rows at once, so
//                                        all rows in two rounds: 256 blocks, each warp of which takes two rows
//
// Each block writes one line of partial sums to scratch memory: fewer blocks move fewer bytes, and more blocks hide the
// latency of loads. The cost model decides.
#pragma once

#include "ir/graph.h"
#include "schedule/cost/work.h"
#include "schedule/lowering/cross_row_reduction.h"
#include "schedule/target/target.h"

namespace fusec {

// Sets the layout, the elements per thread and the work of least time. Returns false if no layout can keep a row.
// `of_rows` and `of_columns` are the work of the two separate kernels.
bool choose_cross_row_layout(CrossRowReduction& cross_row, const Work& of_rows, const Work& of_columns,
                             const Graph& graph, const Target& target);

}  // namespace fusec
