// Turns the library's Options into the PipelineOptions of the pipeline. The command lines fill in the same Options.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fusec/fusec.h"
#include "pipeline.h"

namespace fusec {

// `device` is the GPU that the architecture "native" means. Throws Error(kUsage) for an unknown strategy or
// architecture and for numbers out of range, Error(kEnvironment) for "native" without a GPU.
PipelineOptions pipeline_options(const Options& options, int device = 0);

// Sets the hints of symbols, which costs, reports and random inputs use. Throws Error(kInput) for a symbol that the
// model does not have and for a value outside its bounds.
void set_hints(Graph& graph, const std::map<std::string, std::int64_t>& values);

}  // namespace fusec
