// Which node a wrong output belongs to: the model runs again with the values between its groups as outputs, then with
// those inside the group whose value is the first to deviate.
//
//   x ─▶ [a ─▶ b] ─▶ [c ─▶ d] ─▶ y     y differs; b agrees, d does not; run again with c: c differs: it is c
#pragma once

#include <functional>
#include <optional>

#include "ir/fusion_plan.h"
#include "runtime/compare_outputs.h"

namespace fusec {

struct WrongNode {
  std::string node;
  Difference difference;  // of its value
  GroupId group = 0;      // of the plan
  // Whether a value inside the group was seen to deviate; else only the group's result is known to.
  bool inside = false;
};

// `run` compiles a graph with a plan and executes it: the graph's outputs by name. Nothing where every value that can
// be looked at agrees.
std::optional<WrongNode> find_wrong_node(const Graph& graph, const FusionPlan& plan, const TensorMap& tensors,
                                         const std::optional<Tolerance>& tolerance,
                                         const std::function<TensorMap(const Graph&, const FusionPlan&)>& run,
                                         bool allow_tf32 = false);

}  // namespace fusec
