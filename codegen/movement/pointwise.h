// Kernels without reductions: every thread makes some neighbouring elements of all outputs. Axes that all tensors walk
// alike are merged, so that an elementwise kernel has one axis and divides nothing; neighbours are read and written 16
// bytes at a time where extents allow; what does not depend on the innermost axis is read once. A thread has several
// such groups where there are enough of them, and loads all before it computes the first:
//
//   group = blockIdx.x * 512 + threadIdx.x, and 256 on:   gate_w[0], up_w[0], gate_w[1], up_w[1], then h of both
#pragma once

#include "analysis/kernel/kernel.h"
#include "codegen/expr/kernel_source.h"
#include "schedule/plan/schedule_choice.h"
#include "schedule/target/target.h"

namespace fusec {

// A kernel without reductions.
KernelSource pointwise(const Kernel& kernel, const Graph& graph, const Target& target, ScheduleChoice& choices);

// Are there parts of axes that share what they read (codegen/movement/thread_coarsening), all of it in vectors?
bool coarsens_in_vectors(const Kernel& kernel, const Graph& graph, const Target& target);

}  // namespace fusec
