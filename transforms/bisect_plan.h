// Finds the fusion that makes a test fail, by binary search over the plan's fusions: the test fails with it and passes
// without it.
//
//   groups {a b} {c} {d e f} {g h}     fusions {a b}, {d e f}, {g h}
//   all: fails   none: passes   {a b}: passes   {a b} {d e f}: fails   ->   {d e f}
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/fusion_plan.h"

namespace fusec {

// The plan with only the groups that `fused` marks (by GroupId). The nodes of other groups become groups of one node.
FusionPlan with_fusions(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan,
                        const std::vector<bool>& fused);

struct Bisection {
  enum class Outcome : std::uint8_t {
    kFound,
    kPassesWithAll,  // the test passes with the whole plan
    kFailsWithNone,  // the test fails without any fusion
  };
  Outcome outcome = Outcome::kFound;
  GroupId group = kNone;  // kFound: the fusion, as a group of the plan
  bool alone = false;     // kFound: fails with this fusion alone; else only together with the fusions before it
  std::size_t tests = 0;
  FusionPlan plan;  // kFound: the smallest set of fusions known to fail
};

// Calls `passes` for at most log2(fusions) + 3 plans.
Bisection bisect_fusions(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan,
                         const std::function<bool(const FusionPlan&)>& passes);

}  // namespace fusec
