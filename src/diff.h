// `fusec diff A B`: compares launches, bytes, predicted time and fused groups of two models, or of one model under two
// sets of options. A side may also be a partition, a report or a plan that fusec wrote.
#pragma once

#include <string>
#include <vector>

#include "command_line.h"

namespace fusec {

void add_diff_options(CLI::App& app, std::vector<std::string>& sides, std::vector<std::string>& against);

// `against` are additional options of the second side. Returns the exit status.
int run_diff(const CompileArguments& arguments, const std::vector<std::string>& sides,
             const std::vector<std::string>& against);

}  // namespace fusec
