// Counts the work of products with the tiles that are planned for them. A block computes a tile at a time: the operands
// of a tile's rows and columns are loaded and computed once per tile, and tiles at the edges count as full ones.
#pragma once

#include "schedule/cost/work.h"
#include "schedule/plan/kernel_planner.h"
#include "schedule/plan/work_counter.h"

namespace fusec {

// `work` has the bytes and registers that `count` counts; the functions add the operations and the launch.
void count_contraction(const KernelPlanner& planner, WorkCounter& count, Work& work);

// A block computes whole rows. The accumulators occur in the expressions once at the output's columns and once per
// reduction.
void count_row_gemm(const KernelPlanner& planner, const WorkCounter& count, Work& work);

// The form knows its instruction count; it counts instructions of half rate as a multiply-add.
void count_grouped_gemm(const GroupedImplicitGemm& groups, const Target& target, Work& work);

}  // namespace fusec
