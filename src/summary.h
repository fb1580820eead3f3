// What fusec says of a compiled model in one line on standard error. Each count says what it counts, so that groups,
// kernels and launches that differ in number explain one another:
//
//   mlp: 5 nodes in 2 groups; 2 launches of 2 kernels, 6 kernels for other sizes; workspace 0 bytes
//   cnn: 170 nodes in 160 groups, 107 prepared; 53 launches of 48 kernels, 107 launches once for each set of weights;
//   ...
#pragma once

#include <string>

#include "pipeline.h"

namespace fusec {

// `generated` is null where no source was asked for.
std::string summary_text(const PlannedModel& planned, const GeneratedModel* generated, std::size_t file_nodes);

}  // namespace fusec
