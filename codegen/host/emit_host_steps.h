// Emits the lines of M_launch or M_prepare that enqueue the steps of a launch plan.
#pragma once

#include <string>
#include <vector>

#include "codegen/host/emit_matrix_calls.h"
#include "codegen/host/host_names.h"
#include "ir/fusion_plan.h"

namespace fusec {

struct HostSteps {
  const Graph& graph;
  const FusionPlan& plan;
  const LaunchPlan& launch;
  const HostNames& names;
  const MatrixCallsText& matrix_calls;
};

// The steps in order, until one fails. A comment above the steps of each group lists its nodes.
std::string steps_text(const HostSteps& host, const std::vector<LaunchStep>& steps);

// The name of the function that launches an external node.
std::string external_symbol(const Graph& graph, const Node& node);

}  // namespace fusec
