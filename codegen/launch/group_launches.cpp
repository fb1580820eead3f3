#include "codegen/launch/group_launches.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/budget.h"
#include "schedule/lowering/horizontal_fusion.h"

namespace fusec {
namespace {

void add_stores(const Kernel& kernel, std::vector<ValueId>& stores) {
  for (const KernelOutput& output : kernel.outputs) stores.push_back(output.value);
}

}  // namespace

bool has_no_elements(const Graph& graph, ValueId v) {
  return std::ranges::any_of(graph.tensor(v).shape, [](const Dim& d) { return d.is(0); });
}

std::vector<GroupAction> GroupLaunches::of(const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs,
                                           bool together) {
  const GroupKey& key = signatures_.of(nodes, outputs);
  const GroupParts parts{nodes, signatures_.operands()};
  if (const auto known = known_.find(key); known != known_.end()) return renamed(known->second, parts);
  actions_.clear();
  lower(nodes, outputs, together);
  return known_.emplace(key, Known{parts, actions_}).first->second.actions;
}

std::vector<GroupAction> GroupLaunches::renamed(const Known& known, const GroupParts& parts) const {
  const GroupRenaming renaming(graph_, known.parts, parts);
  std::vector<GroupAction> actions = known.actions;
  for (GroupAction& action : actions) {
    count_step();
    if (action.kind == GroupAction::Kind::kAlias) {
      action.value = renaming.value(action.value);
      action.of = renaming.value(action.of);
    } else if (action.kind == GroupAction::Kind::kSpecial) {
      action.node = renaming.node(action.node);
    }
    for (ValueId& v : action.stores) v = renaming.value(v);
    for (ValueId& v : action.launch.tensors) v = renaming.value(v);
    for (NodeId& n : action.launch.nodes) n = renaming.node(n);
  }
  return actions;
}

void GroupLaunches::lower(const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs, bool together) {
  std::vector<LoweredUnit> units = lower_group(graph_, nodes, outputs, options_.round_intermediates, &forms_, memory_);
  set_numerics(units, options_.numerics);
  if (!together || units.size() == 1) {
    for (const LoweredUnit& unit : units) add_unit(unit);
    return;
  }
  const FormsOfUnits forms = forms_of(units);
  folded_ = cross_row_units(units, forms, graph_, target_);
  for (const std::vector<std::uint32_t>& launch : launches_of(units, forms, folded_, graph_, target_))
    add_launch(units, launch);
}

bool GroupLaunches::makes_nothing(const Kernel& kernel) const {
  return std::ranges::all_of(kernel.outputs, [&](const KernelOutput& o) { return has_no_elements(graph_, o.value); });
}

void GroupLaunches::add_unit(const LoweredUnit& unit) {
  switch (unit.kind) {
    case LoweredUnit::Kind::kKernel:
      return add_kernel(unit.kernel);
    case LoweredUnit::Kind::kSpecial:
      actions_.push_back({.kind = GroupAction::Kind::kSpecial, .node = unit.node, .stores = {}, .launch = {}});
      return;
    case LoweredUnit::Kind::kAlias:
      actions_.push_back(
          {.kind = GroupAction::Kind::kAlias, .value = unit.value, .of = unit.of, .stores = {}, .launch = {}});
      return;
  }
}

void GroupLaunches::add_kernel(const Kernel& kernel) {
  GroupAction action;
  add_stores(kernel, action.stores);
  if (!makes_nothing(kernel)) action.launch = generator_.alone(kernel);
  actions_.push_back(std::move(action));
}

// Tries one launch for all units, then two halves, and so on.
void GroupLaunches::add_launch(const std::vector<LoweredUnit>& units, std::span<const std::uint32_t> launch) {
  if (launch.size() == 1) return add_unit(units[launch[0]]);
  if (const CrossRowUnits* const folded = folded_at(launch, 0); folded && folded->columns.size() + 1 == launch.size())
    return add_folded(units, *folded);
  if (add_joined(units, launch)) return;
  add_launch(units, launch.first(launch.size() / 2));
  add_launch(units, launch.subspan(launch.size() / 2));
}

// The cross-row reduction that consists of the launch's units from `at` on; null if there is none.
const CrossRowUnits* GroupLaunches::folded_at(std::span<const std::uint32_t> launch, std::size_t at) const {
  const auto folded = std::ranges::find(folded_, launch[at], &CrossRowUnits::rows);
  if (folded == folded_.end() || folded->columns.size() >= launch.size() - at) return nullptr;
  return std::ranges::equal(folded->columns, launch.subspan(at + 1, folded->columns.size())) ? &*folded : nullptr;
}

// Launches a fused cross-row reduction alone. If its rows do not fit in registers, launches its kernels separately.
void GroupLaunches::add_folded(const std::vector<LoweredUnit>& units, const CrossRowUnits& folded) {
  GroupAction action;
  action.launch = generator_.folded(units, folded);
  if (action.launch.is_none()) {
    add_kernel(units[folded.rows].kernel);
    for (const std::uint32_t u : folded.columns) add_kernel(units[u].kernel);
    return;
  }
  add_stores(units[folded.rows].kernel, action.stores);
  add_stores(folded.cross_row.columns.kernel, action.stores);
  actions_.push_back(std::move(action));
}

// Fuses a launch's kernels into one; false if that is impossible.
bool GroupLaunches::add_joined(const std::vector<LoweredUnit>& units, std::span<const std::uint32_t> launch) {
  std::vector<const Kernel*> kernels;
  for (const std::uint32_t u : launch)
    if (!makes_nothing(units[u].kernel)) kernels.push_back(&units[u].kernel);
  if (kernels.size() < 2) return false;
  GroupAction action;
  action.launch = generator_.together(kernels);
  if (action.launch.generated->too_much) return false;
  if (action.launch.is_none()) {
    const std::vector<LaunchPart> parts = parts_of(units, launch);
    std::optional<GeneratedLaunch> fused_horizontally;
    if (parts.size() > 1) fused_horizontally = generator_.fused_horizontally(units, parts);
    if (!fused_horizontally) return false;
    action.launch = *std::move(fused_horizontally);
  }
  for (const std::uint32_t u : launch) add_stores(units[u].kernel, action.stores);
  actions_.push_back(std::move(action));
  return true;
}

std::vector<LaunchPart> GroupLaunches::parts_of(const std::vector<LoweredUnit>& units,
                                                std::span<const std::uint32_t> launch) const {
  std::vector<LaunchPart> parts;
  for (std::size_t at = 0; at < launch.size(); ++at) {
    count_step();
    const Kernel& kernel = units[launch[at]].kernel;
    if (makes_nothing(kernel)) continue;
    parts.push_back({&kernel, folded_at(launch, at)});
    if (parts.back().folded) at += parts.back().folded->columns.size();
  }
  return parts;
}

}  // namespace fusec
