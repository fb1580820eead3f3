#include "schedule/lowering/launch_cost.h"

#include <algorithm>

#include "analysis/kernel/formula_flops.h"
#include "schedule/lowering/cross_row_reduction.h"
#include "schedule/plan/count_work.h"
#include "schedule/plan/kernel_planner.h"

namespace fusec {
namespace {

// Returns nothing if the unit launches nothing.
std::optional<Work> work_of(const Graph& graph, const LoweredUnit& unit, const FormOfKernel* form,
                            const Target& target) {
  if (unit.kind == LoweredUnit::Kind::kAlias) return std::nullopt;
  if (unit.kind == LoweredUnit::Kind::kSpecial) return work_of_special(graph, graph.nodes[unit.node]);
  if (stores_nothing(graph, unit.kernel)) return std::nullopt;
  return KernelPlanner(unit.kernel, *form, graph, target).work();
}

}  // namespace

std::optional<Work> work_of_launch(const Graph& graph, const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                                   const std::vector<std::uint32_t>& launch, const std::vector<CrossRowUnits>& folded,
                                   const Target& target) {
  const Target of_launch = target_of_launch(graph, units, forms, launch, target);
  std::optional<Work> work;
  for (const std::uint32_t u : launch) {
    const auto folds_it = [&](const CrossRowUnits& with) { return with.has_column_unit(u); };
    if (launch.size() > 1 && std::ranges::any_of(folded, folds_it)) continue;
    const auto with = std::ranges::find(folded, u, &CrossRowUnits::rows);
    if (const std::optional<Work> part = with != folded.end() && launch.size() > 1
                                             ? with->cross_row.work
                                             : work_of(graph, units[u], forms[u].get(), of_launch))
      work = work ? horizontally_fused(*work, *part, target) : *part;
  }
  return work;
}

Prediction predict(const Graph& graph, const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs,
                   bool together, const Target& target, const Numerics& numerics, FormMemory* known,
                   LoweringMemory* memory) {
  std::vector<LoweredUnit> units = lower_group(graph, nodes, outputs, false, known, memory);
  set_numerics(units, numerics);
  const FormsOfUnits forms = forms_of(units);
  std::vector<CrossRowUnits> folded;
  if (together) folded = cross_row_units(units, forms, graph, target);
  std::vector<std::vector<std::uint32_t>> launches;
  if (together) launches = launches_of(units, forms, folded, graph, target);
  for (std::uint32_t u = 0; !together && u < units.size(); ++u) launches.push_back({u});
  Prediction sum;
  for (const std::vector<std::uint32_t>& launch : launches)
    if (const auto work = work_of_launch(graph, units, forms, launch, folded, target)) sum += predict(*work, target);
  for (const LoweredUnit& unit : units)
    if (unit.kind == LoweredUnit::Kind::kKernel) sum.flops += formula_flops(unit.kernel);
  return sum;
}

}  // namespace fusec
