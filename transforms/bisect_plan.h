// Which of a plan's fusions is to blame? The set of fusions is halved until the one is found with which a test fails
// and without which it passes.
//
//   groups {a b} {c} {d e f} {g h}     fusions {a b}, {d e f}, {g h}
//   all: fails   none: passes   {a b}: passes   {a b} {d e f}: fails   ->   {d e f}
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/fusion_plan.h"

namespace fusec {

// The plan with these of its groups (by GroupId); the others' nodes stand alone.
FusionPlan with_fusions(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan,
                        const std::vector<bool>& fused);

struct Bisection {
  enum class Outcome : std::uint8_t {
    kFound,
    kPassesWithAll,  // nothing is wrong
    kFailsWithNone,  // fusion is not to blame
  };
  Outcome outcome = Outcome::kFound;
  GroupId group = kNone;  // kFound: of the plan
  bool alone = false;     // kFound: fails with this fusion alone; else only together with those before it
  std::size_t tests = 0;
  FusionPlan plan;  // kFound: the smallest set of fusions known to fail
};

// `passes` is asked about log2(fusions) + 3 plans at most.
Bisection bisect_fusions(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan,
                         const std::function<bool(const FusionPlan&)>& passes);

}  // namespace fusec
