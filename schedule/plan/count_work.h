// Counts the work of a kernel (schedule/cost/work.h) with the tiles, rows or windows that it is planned to have.
#pragma once

#include "ir/graph.h"
#include "schedule/cost/work.h"

namespace fusec {

class KernelPlanner;

// `planner` keeps it: KernelPlanner::work().
Work count_work(const KernelPlanner& planner);

// Counts what an op without a formula, or a copy, reads and writes.
Work work_of_special(const Graph& graph, const Node& node);

}  // namespace fusec
