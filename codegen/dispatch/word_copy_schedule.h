// Schedules a kernel that only moves data as a copy of whole words (schedule/movement/word_copy). The emitted text uses
// the model's values and names again. Falls back to the kernel's own schedule if it is no word copy.
#pragma once

#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/kernel_source.h"
#include "ir/graph.h"
#include "schedule/form_memory.h"
#include "schedule/target/target.h"

namespace fusec {

std::vector<KernelSource> schedule_word_copy(const Kernel& kernel, const Graph& graph, const Target& target,
                                             const std::string& wanted, FormMemory& forms);

}  // namespace fusec
