// A kernel as its schedule has it, where it may be moved as words (analysis/moved_words): the words' kernel is
// scheduled, and its text is the model's again, with the model's values and names.
#pragma once

#include <string>
#include <vector>

#include "analysis/kernel.h"
#include "analysis/target.h"
#include "codegen/kernel_source.h"
#include "ir/graph.h"

namespace fusec {

std::vector<KernelSource> schedule_moved(const Kernel& kernel, const Graph& graph, const Target& target,
                                         const std::string& wanted);

}  // namespace fusec
