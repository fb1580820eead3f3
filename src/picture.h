// What pictures of a compiled model show beside its graph and plan: --emit=dot, svg and html are made of this value.
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
  const LaunchPlan* launch;  // null where no source can be made
  const Target& target;
  PredictedModel predicted;
  RepeatedGroups repeated;  // blocks that are worth a frame
};

// Refers to all three.
Picture picture_of(const PlannedModel& planned, const LaunchPlan* launch, const PipelineOptions& options);

// By group: the steps of a launch that belong to it, as places in LaunchPlan::steps.
std::vector<std::vector<std::uint32_t>> steps_of_groups(const Picture& picture);

// By place in RepeatedGroups::items: the place that stands for it where blocks are folded to their first copy.
std::vector<std::uint32_t> folded_places(const RepeatedGroups& repeated);

// "silu(gate)", "linear(x, w_gate)": operands by name, numbers as such.
std::string call_text(const Graph& graph, const Node& node);

// "#d5e8d4": the colour of a pattern kind, in every picture the same.
std::string_view colour(OpPattern pattern);

std::string short_bytes(double bytes);   // "197 MB"
std::string short_time(double seconds);  // "379 µs"

}  // namespace fusec
