// A kernel as its schedule has it, where it may be moved as words (schedule/movement/word_copy): the words' kernel is
// scheduled, and its text is the model's again, with the model's values and names.
#pragma once

#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/kernel_source.h"
#include "ir/graph.h"
#include "schedule/target/target.h"

namespace fusec {

std::vector<KernelSource> schedule_word_copy(const Kernel& kernel, const Graph& graph, const Target& target,
                                             const std::string& wanted);

}  // namespace fusec
