#include "schedule/lowering/trial_lowering.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "schedule/cost/cost_model.h"
#include "schedule/kernel_forms.h"
#include "schedule/lowering/cross_row_reduction.h"
#include "schedule/lowering/horizontal_fusion.h"
#include "schedule/lowering/launch_cost.h"
#include "schedule/lowering/lower_group.h"
#include "schedule/plan/kernel_planner.h"

namespace fusec {
namespace {

// Whether a kernel reads what another one stores, so that it needs a later launch. `may_fold`: two kernels of rows may
// still become one (schedule/lowering/cross_row_reduction).
bool run_one_after_another(const std::vector<LoweredUnit>& units, const FormsOfUnits& forms, bool may_fold) {
  std::map<ValueId, bool> stored;  // whether kernels of rows alone store it
  for (std::size_t u = 0; u < units.size(); ++u) {
    const LoweredUnit& unit = units[u];
    if (unit.kind == LoweredUnit::Kind::kAlias)
      if (const auto of = stored.find(unit.of); of != stored.end()) stored[unit.value] = of->second;
    if (!forms[u]) continue;
    const bool rows = may_fold && forms[u]->form == KernelForm::kRowReduction;
    for (const ValueId v : inputs_of(unit.kernel))
      if (const auto made = stored.find(v); made != stored.end() && !(rows && made->second)) return true;
    for (const KernelOutput& output : unit.kernel.outputs) {
      const auto [made, is_new] = stored.try_emplace(output.value, rows);
      made->second = made->second && rows;
    }
  }
  return false;
}

// Places in the list of the nodes whose results one kernel stores and another reads, in order.
std::vector<std::uint32_t> stored_between(const Graph& graph, const std::vector<LoweredUnit>& units,
                                          std::span<const NodeId> nodes) {
  std::set<ValueId> read;
  for (const LoweredUnit& unit : units)
    if (unit.kind == LoweredUnit::Kind::kKernel)
      for (const ValueId v : inputs_of(unit.kernel)) read.insert(v);
  for (auto unit = units.rbegin(); unit != units.rend(); ++unit)
    if (unit->kind == LoweredUnit::Kind::kAlias && read.contains(unit->value)) read.insert(unit->of);
  std::vector<std::uint32_t> places;
  for (const LoweredUnit& unit : units)
    for (const KernelOutput& output : unit.kernel.outputs) {
      if (!read.contains(output.value)) continue;
      const auto producer = std::ranges::lower_bound(nodes, graph.value(output.value).producer);
      places.push_back(static_cast<std::uint32_t>(producer - nodes.begin()));
    }
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

// The result of a trial that was ended because it has two or more launches.
TrialResult several_launches() {
  TrialResult result;
  result.whole = false;
  result.launches = 2;
  return result;
}

}  // namespace

TrialLowering::TrialLowering(const Graph& graph, TrialMemory& memory, std::int64_t budget)
    : graph_(graph),
      memory_(memory),
      budget_(budget),
      signatures_(graph, ++memory.searches_),
      bytes_(graph),
      lowering_(memory.lowering_ ? memory.lowering_ : std::make_shared<LoweringMemory>()) {}

const TrialResult& TrialLowering::of(std::span<const NodeId> nodes, std::span<const ValueId> outputs) {
  return answer(nodes, outputs, true);
}

const TrialResult& TrialLowering::of_one_launch(std::span<const NodeId> nodes, std::span<const ValueId> outputs) {
  return answer(nodes, outputs, false);
}

const TrialResult& TrialLowering::answer(std::span<const NodeId> nodes, std::span<const ValueId> outputs, bool whole) {
  static const TrialResult kUnknown{.known = false};
  const GroupKey& key = signatures_.of(nodes, outputs);
  const auto found = memory_.tried_.find(key);
  if (found != memory_.tried_.end()) {
    if (found->second.whole || !whole) return found->second;
    if (memory_.deadline_.has_passed()) return kUnknown;
    return found->second = lower(nodes, outputs, true);
  }
  budget_ -= static_cast<std::int64_t>(nodes.size());
  if (budget_ < 0 || memory_.deadline_.has_passed()) return kUnknown;
  return memory_.tried_.emplace(key, lower(nodes, outputs, whole)).first->second;
}

TrialResult TrialLowering::lower(std::span<const NodeId> nodes, std::span<const ValueId> outputs, bool whole) {
  TrialResult result;
  const std::vector<LoweredUnit> units =
      lower_group(graph_, {nodes.begin(), nodes.end()}, {outputs.begin(), outputs.end()}, false, memory_.forms_.get(),
                  lowering_.get());
  const FormsOfUnits forms = forms_of(units);
  const auto are_apart = [&](bool may_fold) { return !whole && run_one_after_another(units, forms, may_fold); };
  if (are_apart(true)) return several_launches();
  const std::vector<CrossRowUnits> folded = cross_row_units(units, forms, graph_, memory_.target());
  if (folded.empty() && are_apart(false)) return several_launches();
  const std::vector<std::vector<std::uint32_t>> launches = launches_of(units, forms, folded, graph_, memory_.target());
  const auto is_view = [&](const auto& launch) { return units[launch[0]].kind == LoweredUnit::Kind::kAlias; };
  result.launches = static_cast<std::uint32_t>(std::ranges::count_if(launches, std::not_fn(is_view)));
  if (!whole && result.launches > 1) return several_launches();
  for (const std::vector<std::uint32_t>& launch : launches) {
    if (is_view(launch)) continue;
    const std::optional<Work> work = work_of_launch(graph_, units, forms, launch, folded, memory_.target());
    const double seconds = work ? predict(*work, memory_.target()).total : 0;
    result.seconds += seconds;
    if (memory_.distinguishes_forms_) {
      const Target of_launch = target_of_launch(graph_, units, forms, launch, memory_.target());
      double of_parts = 0;
      for (const std::uint32_t u : launch)
        if (forms[u]) of_parts += KernelPlanner(units[u].kernel, *forms[u], graph_, of_launch).seconds_of_form();
      result.form_seconds += std::max(seconds, of_parts);
    }
    const bool kernels = std::ranges::all_of(launch, [&](std::uint32_t u) { return forms[u] != nullptr; });
    if (kernels) result.work = work.value_or(Work{});
    // What kernels side by side have in common counts once, what one folds for another not at all.
    std::set<ValueId> touched;
    for (const std::uint32_t u : launch) {
      if (units[u].kind != LoweredUnit::Kind::kKernel) continue;
      for (const ValueId v : inputs_of(units[u].kernel)) touched.insert(v);
      for (const KernelOutput& output : units[u].kernel.outputs) touched.insert(output.value);
    }
    for (const CrossRowUnits& with : folded)
      if (launch.size() > 1 && std::ranges::find(launch, with.rows) != launch.end())
        for (const ValueId v : with.unstored) touched.erase(v);
    for (const ValueId v : touched) result.bytes += bytes_.of(v);
  }
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (units[u].kind == LoweredUnit::Kind::kAlias) continue;
    ++result.kernels;
    if (!forms[u]) continue;
    const FormOfKernel& form = *forms[u];
    result.strength = std::max(result.strength, strength(form.form));
    result.has_elements = result.has_elements || form.form == KernelForm::kThreadPerElement;
    result.row_gemm = result.row_gemm || form.form == KernelForm::kRowGemm;
  }
  if (result.launches != 1) {
    result.work.reset();
    result.stored = stored_between(graph_, units, nodes);
  }
  return result;
}

}  // namespace fusec
