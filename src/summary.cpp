#include "summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "codegen/identifiers.h"
#include "kernel_at_hints.h"

namespace fusec {
namespace {

std::string counted(std::size_t count, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", count, count == 1 ? one : several);
}

// The kernels that a launch at the hints of the symbols runs.
std::size_t kernels_at_hints(const LaunchPlan& launch, const Symbols& symbols) {
  const std::vector<std::int64_t> hints = hints_of(symbols);
  std::set<std::uint32_t> kernels;
  for (const LaunchStep& step : launch.steps) kernels.insert(kernel_at_hints(step, hints));
  kernels.erase(kNone);
  return kernels.size();
}

std::size_t kernels_of_any_size(const LaunchPlan& launch) {
  std::set<std::uint32_t> kernels;
  for (const LaunchStep& step : launch.steps) {
    if (step.kind != LaunchStep::Kind::kKernel) continue;
    kernels.insert(step.kernel);
    for (const LaunchStep::SpecialForm& special : step.special) kernels.insert(special.kernel);
  }
  kernels.erase(kNone);
  return kernels.size();
}

std::string groups_text(const FusionPlan& plan, const LaunchPlan* launch) {
  std::string text = counted(plan.groups.size(), "group", "groups");
  const auto prepared = std::ranges::count_if(plan.groups, &FusionGroup::prepared);
  if (prepared) text += fmt::format(", {} prepared", prepared);
  if (!launch) return text;
  std::vector<std::size_t> launches(plan.groups.size());
  std::size_t copies = 0;
  for (const LaunchStep& step : launch->steps)
    if (step.group < launches.size())
      ++launches[step.group];
    else
      ++copies;
  std::size_t none = 0, several = 0;
  for (std::size_t g = 0; g < launches.size(); ++g) {
    none += launches[g] == 0 && !plan.groups[g].prepared;
    several += launches[g] > 1;
  }
  if (none) text += fmt::format(", {} without a launch (views, or part of another group's launch)", none);
  if (several) text += fmt::format(", {} of more than one launch", several);
  if (copies) text += ", " + counted(copies, "copy of an output", "copies of outputs");
  return text;
}

std::string launches_text(const LaunchPlan& launch, const Symbols& symbols) {
  const std::size_t now = kernels_at_hints(launch, symbols), all = kernels_of_any_size(launch);
  std::string text =
      fmt::format("{} of {}", counted(launch.steps.size(), "launch", "launches"), counted(now, "kernel", "kernels"));
  if (all > now) text += fmt::format(", {} for other sizes", counted(all - now, "kernel", "kernels"));
  if (!launch.prepare_steps.empty())
    text += fmt::format(", {} once for each set of weights", launch.prepare_steps.size());
  return text + fmt::format("; workspace {} bytes", value_at_hint(launch.workspace_bytes, symbols));
}

}  // namespace

std::string summary_text(const PlannedModel& planned, const GeneratedModel* generated, std::size_t file_nodes) {
  const LaunchPlan* launch = generated ? &generated->launch : nullptr;
  std::string text = fmt::format("{}: {} in {}", comment_text(planned.graph.name), counted(file_nodes, "node", "nodes"),
                                 groups_text(planned.plan, launch));
  if (launch) text += "; " + launches_text(*launch, planned.graph.symbols);
  return text;
}

}  // namespace fusec
