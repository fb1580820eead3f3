#include "schedule/lowering/horizontal_fusion.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "analysis/kernel/kernel_signature.h"
#include "schedule/gemm/contraction_code_size.h"
#include "schedule/gemm/warpgroup_gemm_form.h"
#include "schedule/lowering/cross_row_reduction.h"
#include "schedule/lowering/light_code_size.h"
#include "schedule/plan/kernel_planner.h"
#include "schedule/target/target.h"

namespace fusec {

namespace {

// Most operand tiles in shared memory, over all kernels of a launch. A tile takes 5 KiB.
constexpr std::size_t kMostFactors = 8;

// Most tensors of a launch: each is a parameter, and sizes are parameters too.
constexpr std::size_t kMostTensors = kMaxLargeParameterBytes / 8 - 64;

// Limit for light kernels, whose code size is known less well than that of products.
constexpr double kMostLightCode = 10;

// The products of a launch that further products may join.
struct Contractions {
  std::size_t launch;
  std::uint32_t level;
  KernelForm form;
  std::size_t factors;
  ContractionCodeSize code;
  std::vector<ValueId> inputs;

  bool has_room_for(const ContractionCodeSize& more) const { return code.alongside(more).sum() <= kMaxCodeSize; }
};

std::size_t factor_count(const Contraction& contraction) {
  std::size_t left = 0, right = 0;
  for (const ContractionLoop& loop : contraction.loops) {
    left = std::max(left, loop.left.size());
    right = std::max(right, loop.right.size());
  }
  return left + right;
}

bool is_wide(const FormOfKernel& form, const Kernel& kernel) {
  const Kernel& shown = form.rewritten ? *form.rewritten : kernel;
  const ScalarType type = shown.pool[form.contraction->loops[0].terms[0].reduction].type;
  return type == ScalarType::kFloat64 || type == ScalarType::kInt64;
}

// Adds the product to the first launch that it can join, else to a new one. Returns the index in `all`.
std::size_t join_contractions(std::vector<Contractions>& all, const Kernel& kernel, const FormOfKernel& form,
                              std::uint32_t level, const ContractionCodeSize& code, std::size_t next_launch) {
  const std::vector<ValueId> inputs = inputs_of(kernel);
  const std::size_t factors = factor_count(*form.contraction);
  for (Contractions& there : all) {
    const bool shares = std::ranges::any_of(
        inputs, [&](ValueId v) { return std::ranges::find(there.inputs, v) != there.inputs.end(); });
    if (there.level != level || there.form != form.form || !shares || there.factors + factors > kMostFactors ||
        !there.has_room_for(code))
      continue;
    there.factors += factors;
    there.code = there.code.alongside(code);
    there.inputs.insert(there.inputs.end(), inputs.begin(), inputs.end());
    return static_cast<std::size_t>(&there - all.data());
  }
  all.push_back({next_launch, level, form.form, factors, code, inputs});
  return all.size() - 1;
}

bool is_kernel(const LoweredUnit& unit) {
  return unit.kind == LoweredUnit::Kind::kKernel;
}

// Returns whether every unit runs alone.
bool is_one_by_one(const std::vector<LoweredUnit>& units) {
  return std::ranges::any_of(units, [](const LoweredUnit& u) { return u.kind == LoweredUnit::Kind::kSpecial; }) ||
         std::ranges::count_if(units, is_kernel) < 2;
}

// Returns whether one persistent grid of warpgroups computes the tiles of all these products.
bool are_multiplied_together(const Graph& graph, const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                             const std::vector<std::uint32_t>& launch, const Target& target) {
  if (!has_warpgroups(target)) return false;
  std::vector<KernelPlanner> planners;
  for (const std::uint32_t u : launch) {
    if (!forms[u]) return false;
    planners.emplace_back(units[u].kernel, *forms[u], graph, target);
  }
  return !multiplied_together(planners).empty();
}

}  // namespace

bool can_fuse_horizontally(KernelForm form) {
  return form == KernelForm::kPointwise || form == KernelForm::kRowReduction;
}

FormsOfUnits forms_of(const std::vector<LoweredUnit>& units) {
  FormsOfUnits forms(units.size());
  for (std::size_t u = 0; u < units.size(); ++u)
    if (is_kernel(units[u]))
      forms[u] = units[u].form ? units[u].form : std::make_shared<const FormOfKernel>(form_of(units[u].kernel));
  return forms;
}

Target as_seen_in_shared_launch(Target target) {
  target.architecture_specific = false;
  target.strip_threads /= 2;
  constexpr int kLastWithoutClusters = 89;
  target.compute_capability = std::min(target.compute_capability, kLastWithoutClusters);
  return target;
}

Target target_of_launch(const Graph& graph, const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                        const std::vector<std::uint32_t>& launch, const Target& target) {
  if (launch.size() == 1 || are_multiplied_together(graph, units, forms, launch, target)) return target;
  return as_seen_in_shared_launch(target);
}

namespace {

// What a target decides about a unit.
struct UnitOnTarget {
  bool alone = false;    // joins no other unit
  bool cluster = false;  // uses block clusters if it runs alone
  std::size_t launches = 1;
  double code = 0;  // of a light kernel, in the units of schedule/gemm/contraction_code_size.h
  ContractionCodeSize contraction = {};
  std::string kind = "";  // equal for light kernels that share one device function
  // Column units that it folds (schedule/lowering/cross_row_reduction).
  std::vector<std::uint32_t> folded = {};
  bool is_folded = false;  // folded by another unit, and launched with it
};

// `rows`: the candidates that the kernel would have in the launch, if it has rows.
double code_of_light(const KernelPlanner& planner, const RowCandidates* rows) {
  if (rows) return light_code_size(*rows, planner.graph());
  const Gemv* vector = planner.gemv();
  if (!vector) return light_code_size(planner.kernel(), planner.graph());
  const ContractionMatch& match = vector->answer;
  return skinny_gemm_code_size(match.kernel ? *match.kernel : planner.kernel(), *match.contraction, vector->form).sum();
}

std::vector<std::vector<std::uint32_t>> arranged(const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                                                 const std::vector<UnitOnTarget>& on_target) {
  std::vector<std::vector<std::uint32_t>> launches;
  const auto count = static_cast<std::uint32_t>(units.size());
  if (is_one_by_one(units)) {
    for (std::uint32_t u = 0; u < count; ++u) launches.push_back({u});
    return launches;
  }
  // The level of a value: the longest chain of kernels before it. A view has the level of its base.
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
    for (const KernelOutput& output : units[u].kernel.outputs) {
      std::uint32_t& made = level_of[output.value];  // several units may make parts of it
      made = std::max(made, level[u]);
    }
  }
  // At each level, every cluster kernel is a launch, and all others share one, or two if some leave partial results.
  constexpr std::size_t kMostLaunches = 2;
  struct OfLevel {
    std::size_t clusters = 0, launches_of_others = 0;
  };
  std::map<std::uint32_t, OfLevel> of_level;
  for (std::uint32_t u = 0; u < count; ++u) {
    if (!forms[u] || on_target[u].alone || on_target[u].is_folded || !can_fuse_horizontally(forms[u]->form)) continue;
    OfLevel& there = of_level[level[u]];
    if (on_target[u].cluster)
      ++there.clusters;
    else
      there.launches_of_others = std::max(there.launches_of_others, on_target[u].launches);
  }
  const auto stands_alone = [&](std::uint32_t u) {
    const OfLevel& there = of_level[level[u]];
    return on_target[u].alone || (on_target[u].cluster && there.clusters + there.launches_of_others <= kMostLaunches);
  };
  struct LightLaunch {
    std::size_t launch, tensors = 0;
    double code = 0;
    std::set<std::string> kinds = {};

    double code_with(const UnitOnTarget& unit) const { return code + (kinds.contains(unit.kind) ? 0 : unit.code); }
    void add(std::size_t more_tensors, const UnitOnTarget& unit) {
      tensors += more_tensors;
      code = code_with(unit);
      kinds.insert(unit.kind);
    }
  };
  std::map<std::uint32_t, LightLaunch> alongside;  // by level: the launch that light kernels join
  std::vector<Contractions> contractions;
  std::vector<std::uint32_t> order(count);
  for (std::uint32_t u = 0; u < count; ++u) order[u] = u;
  std::erase_if(order, [&](std::uint32_t u) { return on_target[u].is_folded; });
  const auto is_light = [&](std::uint32_t u) {
    return forms[u] && !stands_alone(u) && can_fuse_horizontally(forms[u]->form);
  };
  // Views follow their base. They need memory of their own if they are results.
  std::ranges::stable_sort(order, {},
                           [&](std::uint32_t u) { return std::tuple(level[u], !is_kernel(units[u]), is_light(u)); });
  // by value and level: the product that makes the value or a part of it
  std::map<std::pair<ValueId, std::uint32_t>, std::size_t> product_of;
  for (const std::uint32_t u : order) {
    if (is_kernel(units[u])) {
      const FormOfKernel& form = *forms[u];
      const std::pair made(units[u].kernel.outputs[0].value, level[u]);
      if (is_light(u)) {
        if (const auto contraction = product_of.find(made);
            contraction != product_of.end() && contractions[contraction->second].has_room_for({on_target[u].code})) {
          contractions[contraction->second].code =
              contractions[contraction->second].code.alongside({on_target[u].code});
          launches[contractions[contraction->second].launch].push_back(u);
          continue;
        }
        const std::size_t tensors = inputs_of(units[u].kernel).size() + units[u].kernel.outputs.size();
        const auto [it, fresh] = alongside.try_emplace(level[u], LightLaunch{launches.size()});
        if (!fresh && it->second.tensors + tensors <= kMostTensors &&
            it->second.code_with(on_target[u]) <= kMostLightCode) {
          it->second.add(tensors, on_target[u]);
          launches[it->second.launch].push_back(u);
          continue;
        }
        it->second = {launches.size()};
        it->second.add(tensors, on_target[u]);
      } else if (form.contraction && !is_wide(form, units[u].kernel)) {
        const std::size_t at =
            join_contractions(contractions, units[u].kernel, form, level[u], on_target[u].contraction, launches.size());
        product_of.try_emplace(made, at);
        if (contractions[at].launch < launches.size()) {
          launches[contractions[at].launch].push_back(u);
          continue;
        }
      }
    }
    launches.push_back({u});
  }
  for (std::vector<std::uint32_t>& launch : launches)
    for (std::size_t i = 0; i < launch.size(); ++i) {
      const std::vector<std::uint32_t>& folded = on_target[launch[i]].folded;
      launch.insert(launch.begin() + static_cast<std::ptrdiff_t>(i + 1), folded.begin(), folded.end());
      i += folded.size();
    }
  return launches;
}

}  // namespace

std::vector<std::vector<std::uint32_t>> launches_of(const std::vector<LoweredUnit>& units, const FormsOfUnits& forms,
                                                    const std::vector<CrossRowUnits>& folded, const Graph& graph,
                                                    const Target& target) {
  std::vector<UnitOnTarget> on_target(units.size());
  if (is_one_by_one(units)) return arranged(units, forms, on_target);
  for (const CrossRowUnits& with : folded) {
    UnitOnTarget& rows = on_target[with.rows];
    rows.folded = with.columns;
    rows.launches = static_cast<std::size_t>(with.cross_row.work.launches);
    rows.code = light_code_size(with.cross_row, graph);
    rows.kind = signature_of(with.cross_row, graph).text;
    for (const std::uint32_t u : with.columns) on_target[u].is_folded = true;
  }
  const bool some = std::ranges::count_if(forms, [](const auto& f) {
                      return f && (f->contraction || can_fuse_horizontally(f->form));
                    }) > 1;
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (!forms[u] || !on_target[u].folded.empty() || on_target[u].is_folded) continue;
    const Kernel& kernel = units[u].kernel;
    const KernelPlanner planner(kernel, *forms[u], graph, target);
    const RowLaunch launch = planner.row_launch();
    on_target[u].launches = static_cast<std::size_t>(launch.launches);
    const RowCandidates* rows = planner.gemv() ? nullptr : planner.rows();
    if (launch.blocks_per_row > 1) {
      const Target shared = as_seen_in_shared_launch(target);
      const RowCandidates* alongside = KernelPlanner(kernel, *forms[u], graph, shared).rows();
      on_target[u].cluster = alongside && row_launch(*alongside, graph).blocks_per_row == 1;
      on_target[u].alone = !on_target[u].cluster;
      if (on_target[u].cluster) rows = alongside;
    }
    if (!some) continue;
    if (forms[u]->contraction) {
      on_target[u].contraction = planner.code();
    } else if (can_fuse_horizontally(forms[u]->form)) {
      on_target[u].code = code_of_light(planner, rows);
      on_target[u].kind = signature_of(kernel, graph).text;
    }
  }
  return arranged(units, forms, on_target);
}

std::vector<std::vector<std::uint32_t>> launches_of(const std::vector<LoweredUnit>& units) {
  return arranged(units, is_one_by_one(units) ? FormsOfUnits{} : forms_of(units),
                  std::vector<UnitOnTarget>(units.size()));
}

}  // namespace fusec
