// Finds the node that makes an output wrong. The model runs again with the values between its groups as outputs, then
// with the values inside the first group that deviates.
//
//   x ─▶ [a ─▶ b] ─▶ [c ─▶ d] ─▶ y     y differs; b agrees, d differs; the run with c as output: c differs
#pragma once

#include <functional>
#include <optional>

#include "ir/fusion_plan.h"
#include "runtime/compare_outputs.h"

namespace fusec {

struct WrongNode {
  std::string node;
  Difference difference;  // of the node's value
  GroupId group = 0;      // the node's group in the plan
  // True if a value inside the group deviates; false if only a result of the group is known to deviate.
  bool inside = false;
};

// `run` compiles a graph with a plan, executes it and returns its outputs by name. Returns nothing if all values that
// can be checked agree.
std::optional<WrongNode> find_wrong_node(const Graph& graph, const FusionPlan& plan, const TensorMap& tensors,
                                         const std::optional<Tolerance>& tolerance,
                                         const std::function<TensorMap(const Graph&, const FusionPlan&)>& run,
                                         bool allow_tf32 = false);

}  // namespace fusec
