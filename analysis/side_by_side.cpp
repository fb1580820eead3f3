#include "analysis/side_by_side.h"

#include <algorithm>
#include <map>

namespace fusec {

bool runs_side_by_side(KernelForm form) {
  return form == KernelForm::kPointwise || form == KernelForm::kRows;
}

std::vector<std::vector<std::uint32_t>> launches_of(const std::vector<LoweredUnit>& units) {
  std::vector<std::vector<std::uint32_t>> launches;
  const auto count = static_cast<std::uint32_t>(units.size());
  const auto is_kernel = [](const LoweredUnit& u) { return u.kind == LoweredUnit::Kind::kKernel; };
  const bool plain =
      std::ranges::any_of(units, [](const LoweredUnit& u) { return u.kind == LoweredUnit::Kind::kSpecial; }) ||
      std::ranges::count_if(units, is_kernel) < 2;
  if (plain) {
    for (std::uint32_t u = 0; u < count; ++u) launches.push_back({u});
    return launches;
  }
  // How many kernels, one after the other, lie before a value at least; a view is there with what it is a view of.
  std::map<ValueId, std::uint32_t> level_of;
  std::vector<std::uint32_t> level(count, 0);
  const auto level_after = [&](ValueId v) {
    const auto it = level_of.find(v);
    return it == level_of.end() ? 0 : it->second;
  };
  for (std::uint32_t u = 0; u < count; ++u) {
    if (!is_kernel(units[u])) {
      level[u] = level_after(units[u].of);
      level_of[units[u].value] = level[u];
      continue;
    }
    for (const ValueId v : inputs_of(units[u].kernel)) level[u] = std::max(level[u], level_after(v) + 1);
    for (const KernelOutput& output : units[u].kernel.outputs) level_of[output.value] = level[u];
  }
  std::map<std::uint32_t, std::size_t> beside;  // of a level: the launch that light kernels join
  std::vector<std::uint32_t> order(count);
  for (std::uint32_t u = 0; u < count; ++u) order[u] = u;
  std::ranges::stable_sort(order, {}, [&](std::uint32_t u) { return level[u]; });
  for (const std::uint32_t u : order) {
    if (is_kernel(units[u]) && runs_side_by_side(form_of(units[u].kernel).form)) {
      const auto [it, fresh] = beside.try_emplace(level[u], launches.size());
      if (!fresh) {
        launches[it->second].push_back(u);
        continue;
      }
    }
    launches.push_back({u});
  }
  return launches;
}

}  // namespace fusec
