// How long groups take on a target, predicted: of each launch of the kernels that they are lowered to what
// schedule/cost/cost_model.h predicts.
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

// Of what one launch holds; nothing for views, and for what has no elements. `folded`: what is folded of all the units
// (schedule/lowering/cross_row_reduction.h), found once for their launches.
std::optional<Work> work_of_launch(const Graph& graph, const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                                   const std::vector<std::uint32_t>& launch, const std::vector<CrossRowUnits>& folded,
                                   const Target& target);

// Of lowered units, launch by launch; views are for nothing. Operations are not counted.
Prediction predict(const Graph& graph, const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                   const std::vector<std::vector<std::uint32_t>>& launches, const Target& target);

// Of a group: `outputs` as in lower_group, what others need of these nodes' results. `together`: kernels that need
// nothing of one another are one launch (schedule/lowering/horizontal_fusion.h), as under `full`.
Prediction predict(const Graph& graph, const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs,
                   bool together, const Target& target, const Numerics& numerics = {}, FormMemory* forms = nullptr);

}  // namespace fusec
