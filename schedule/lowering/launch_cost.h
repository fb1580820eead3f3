// Predicts how long groups take on a target: the sum over their launches of what schedule/cost/cost_model.h predicts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/kernel/numerics.h"
#include "schedule/cost/cost_model.h"
#include "schedule/cost/work.h"
#include "schedule/lowering/horizontal_fusion.h"
#include "schedule/target/target.h"

namespace fusec {

struct CrossRowUnits;
struct LoweringMemory;

// Returns the work of one launch; nothing for views and for kernels without elements. `folded` holds the cross-row
// reductions of all units (schedule/lowering/cross_row_reduction.h).
std::optional<Work> work_of_launch(const Graph& graph, const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                                   const std::vector<std::uint32_t>& launch, const std::vector<CrossRowUnits>& folded,
                                   const Target& target);

// Predicts a group, launch by launch. Views take no time. `outputs` are the values that others need of these nodes.
// With `together`, independent kernels share launches (schedule/lowering/horizontal_fusion.h), as under `full`.
Prediction predict(const Graph& graph, const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs,
                   bool together, const Target& target, const Numerics& numerics = {}, FormMemory* forms = nullptr,
                   LoweringMemory* memory = nullptr);

}  // namespace fusec
