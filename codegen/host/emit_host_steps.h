// The steps of a launch plan as the lines of M_launch or M_prepare that enqueue them.
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

// One after the other, until one fails; what each group is made of stands above its steps.
std::string steps_text(const HostSteps& host, const std::vector<LaunchStep>& steps);

// The name of the function that launches an external node.
std::string external_symbol(const Graph& graph, const Node& node);

}  // namespace fusec
