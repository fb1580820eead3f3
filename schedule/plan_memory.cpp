#include "schedule/plan_memory.h"

#include <algorithm>

namespace fusec {

PlanMemory::Plans* PlanMemory::plans_for(const Graph& graph, const Target& target) const {
  const auto found = std::ranges::find_if(all_, [&](const Plans& plans) {
    return plans.target == target && plans.symbols == graph.symbols &&
           std::ranges::all_of(plans.loaded, [&](const auto& one) { return graph.tensor(one.first) == one.second; });
  });
  return found == all_.end() ? nullptr : &*found;
}

const void* PlanMemory::known_plan(const Graph& graph, const Target& target, const std::type_info& kind) const {
  const Plans* plans = plans_for(graph, target);
  if (!plans) return nullptr;
  const auto found = std::ranges::find_if(plans->known, [&](const KnownPlan& plan) { return *plan.first == kind; });
  return found == plans->known.end() ? nullptr : found->second.get();
}

void PlanMemory::keep(const Kernel& kernel, const Graph& graph, const Target& target, const std::type_info& kind,
                      std::shared_ptr<const void> plan) const {
  Plans* plans = plans_for(graph, target);
  if (!plans) {
    plans = &all_.emplace_back(Plans{.loaded = {}, .symbols = graph.symbols, .target = target});
    for (const ValueId v : inputs_of(kernel)) plans->loaded.emplace_back(v, graph.tensor(v));
  }
  plans->known.emplace_back(&kind, std::move(plan));
}

}  // namespace fusec
