// Emits out.cu as text: a header comment, the used prelude parts, the kernels and the host part. Also splits it into
// translation units that NVRTC compiles in parallel.
#pragma once

#include <string>
#include <vector>

#include "codegen/launch/launch_plan.h"
#include "ir/fusion_plan.h"
#include "schedule/target/target.h"

namespace fusec {

struct EmittedFile {
  std::string text;                    // out.cu, in ASCII
  std::vector<std::string> units;      // translation units for NVRTC; their line numbers match `text`
  std::vector<std::uint32_t> unit_of;  // by kernel
};

// `units`: the largest number of translation units, at least 1.
EmittedFile emit_file(const Graph& graph, const FusionPlan& plan, const LaunchPlan& launch, const Target& target,
                      std::size_t units);

// The host part alone: the text between #ifndef __CUDACC_RTC__ and #endif.
std::string emit_host(const Graph& graph, const FusionPlan& plan, const LaunchPlan& launch);

}  // namespace fusec
