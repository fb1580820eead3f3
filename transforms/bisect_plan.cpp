#include "transforms/bisect_plan.h"

#include "ir/error.h"

namespace fusec {

FusionPlan with_fusions(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan,
                        const std::vector<bool>& fused) {
  FusionPlan result = plan;
  result.groups.clear();
  for (GroupId g = 0; g < plan.groups.size(); ++g) {
    if (fused[g] || plan.groups[g].nodes.size() == 1) {
      result.groups.push_back(plan.groups[g]);
      continue;
    }
    for (const NodeId n : plan.groups[g].nodes) {
      if (plan.group_of[n] != g) continue;  // recomputed here: the node goes to its first group
      FusionGroup& alone = result.groups.emplace_back();
      alone.nodes = {n};
      alone.prepared = plan.groups[g].prepared;
      classify_group(kinds, alone);
    }
  }
  if (!order_groups(graph, result)) throw InternalError("a part of the fusions closes a circle");
  index_groups(graph, result);
  name_groups(graph, result);
  return result;
}

Bisection bisect_fusions(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan,
                         const std::function<bool(const FusionPlan&)>& passes) {
  std::vector<GroupId> fusions;
  for (GroupId g = 0; g < plan.groups.size(); ++g)
    if (plan.groups[g].nodes.size() > 1) fusions.push_back(g);
  Bisection answer;
  const auto first = [&](std::size_t count) {
    std::vector<bool> fused(plan.groups.size(), false);
    for (std::size_t i = 0; i < count; ++i) fused[fusions[i]] = true;
    return with_fusions(graph, kinds, plan, fused);
  };
  const auto test = [&](const FusionPlan& trial) {
    ++answer.tests;
    return passes(trial);
  };
  if (test(plan)) {
    answer.outcome = Bisection::Outcome::kPassesWithAll;
    return answer;
  }
  if (!test(first(0))) {
    answer.outcome = Bisection::Outcome::kFailsWithNone;
    return answer;
  }
  std::size_t good = 0, bad = fusions.size();  // passes with the first `good` fusions, fails with the first `bad`
  while (bad - good > 1) {
    const std::size_t middle = good + (bad - good) / 2;
    (test(first(middle)) ? good : bad) = middle;
  }
  answer.group = fusions[good];
  answer.plan = first(bad);
  std::vector<bool> only(plan.groups.size(), false);
  only[answer.group] = true;
  FusionPlan alone = with_fusions(graph, kinds, plan, only);
  answer.alone = bad == 1 || !test(alone);
  if (answer.alone) answer.plan = std::move(alone);
  return answer;
}

}  // namespace fusec
