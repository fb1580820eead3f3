// The emitted file: out.cu as text (a header comment, the prelude's parts in use, the kernels, the host part), and the
// pieces of it that NVRTC compiles in parallel.
#pragma once

#include <string>
#include <vector>

#include "codegen/launch/launch_plan.h"
#include "ir/fusion_plan.h"
#include "schedule/target/target.h"

namespace fusec {

struct EmittedFile {
  std::string text;                    // out.cu, ASCII
  std::vector<std::string> units;      // translation units for NVRTC; their lines are numbered as in `text`
  std::vector<std::uint32_t> unit_of;  // of each kernel
};

// `units` is at most how many translation units the kernels are spread over (at least 1).
EmittedFile emit_file(const Graph& graph, const FusionPlan& plan, const LaunchPlan& launch, const Target& target,
                      std::size_t units);

// The host part alone: what stands between #ifndef __CUDACC_RTC__ and #endif.
std::string emit_host(const Graph& graph, const FusionPlan& plan, const LaunchPlan& launch);

}  // namespace fusec
