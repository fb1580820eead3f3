// The phases after the three of the partitioner, under `full`: groups become one wherever together they are one kernel.
// The question is put to the lowering itself (transforms/merge_trial); here is only the walk.
//
//   split-costly     a group of the three phases that is predicted to take longer than its nodes alone is taken apart:
//                    x - var(x) over all of x, of which every block would compute the variance
//   merge-forward    a group goes into one that reads its results: reductions into what follows, softmax written out,
//                    a norm with what stands around it; prologues into products
//   merge-siblings   groups that read the same, and small or independent ones side by side
//   recompute        a cheap group that several read is computed in each of them, and stored no more
//   move-borders     what makes a group's result wider at its end (a cast, a broadcast) goes to those that read it
//   move-views       what a product permutes ahead of it goes to the group that makes it
//
//       max ──▶ sub ──▶ exp ──▶ sum ──▶ div          {max} {sub, exp} {sum} {div}  ▶  one group, rows in one kernel
//                         └──────────────▶
//
// They keep group names where a group stays what it was, and leave those of new groups to name_groups.
#pragma once

#include <span>

#include "ir/fusion_plan.h"
#include "schedule/lowering/trial_lowering.h"

namespace fusec {

void split_costly(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory);
void merge_forward(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory);
void merge_siblings(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory);
void recompute(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory);
void move_borders(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory);
void move_views(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory);

}  // namespace fusec
