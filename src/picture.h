// The data of the pictures of a compiled model (--emit=dot, svg and html): its graph and plan, the predicted costs and
// the repeated blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/repeated_groups.h"
#include "pipeline.h"
#include "predicted_model.h"

namespace fusec {

struct Picture {
  const PlannedModel& planned;
  const LaunchPlan* launch;  // null if no source can be generated
  const Target& target;
  PredictedModel predicted;
  RepeatedGroups repeated;  // repeated blocks that are drawn as one frame
};

// The result refers to all three arguments.
Picture picture_of(const PlannedModel& planned, const LaunchPlan* launch, const PipelineOptions& options);

// By group: its launch steps, as indices into LaunchPlan::steps.
std::vector<std::vector<std::uint32_t>> steps_of_groups(const Picture& picture);

// By index into RepeatedGroups::items: the index of the item that is drawn for it, in the first copy of its block.
std::vector<std::uint32_t> folded_places(const RepeatedGroups& repeated);

// "silu(gate)", "linear(x, w_gate)", "mul(x, 2)".
std::string call_text(const Graph& graph, const Node& node);

// The colour of a pattern kind in all pictures, "#d5e8d4".
std::string_view colour(OpPattern pattern);

std::string short_bytes(double bytes);   // "197 MB"
std::string short_time(double seconds);  // "379 µs"

}  // namespace fusec
