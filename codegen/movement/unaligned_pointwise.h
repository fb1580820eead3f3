// Pointwise kernels with unaligned operands (codegen/access/unaligned_load_text). Each thread makes 16 aligned bytes of
// the results and reads unaligned windows of the operands. Where a row is no multiple of 16 bytes, a thread's lanes may
// be the end of one row and the beginning of the next: values that depend on the row are then loaded for both rows.
//
//   y[i, j] = x[i, j] + b[j], j < 4095:   lanes 8 g .. 8 g + 7 of the results as they lie in memory:
//                                         of row i from j on, and of row i + 1 what is left: b from j on, and from 0
#pragma once

#include <optional>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/kernel_source.h"
#include "codegen/movement/unaligned_pointwise_plan.h"
#include "schedule/target/target.h"

namespace fusec {

// A kernel with axes merged in some way, and how it is made in windows.
struct UnalignedChoice {
  Kernel kernel;
  UnalignedPlan plan;
};

// `merged` is `kernel` with axes merged. Nothing where that takes no fewer accesses than vectors as they lie do
// (codegen/movement/pointwise), of `usual_width` elements; `width` are wanted.
std::optional<UnalignedChoice> choose_unaligned_loads(const Kernel& kernel, const Kernel& merged, const Graph& graph,
                                                      int width, int usual_width);

// Sectors that its loads ask for, for a point, as some warps do.
double sectors_of_loads(const UnalignedChoice& choice, const Graph& graph);

// The same where a short axis (colours of an image) is the fastest one in some tensor and not in another: a thread has
// all its elements. Nothing where there is no such access.
std::optional<KernelSource> unaligned_planes(const Kernel& merged, const Graph& graph, const Target& target, int width);

}  // namespace fusec
