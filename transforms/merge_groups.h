// The merge phases that follow the partitioner under `full`. They merge groups that lower to one kernel together; trial
// lowerings (transforms/merge_trial.h) decide, these functions choose which groups to try.
//
//   split-costly     splits a group of the partitioner that is predicted to take longer than its nodes alone:
//                    x - var(x) over all of x, where each block would compute the variance
//   merge-forward    merges a group into one that reads its results: reductions into their readers, a decomposed
//                    softmax, a norm with its neighbours, prologues into matrix products
//   merge-siblings   merges groups that read the same value, and small or independent groups (horizontal fusion)
//   recompute        computes a cheap group in each of its readers instead of storing its results
//   move-borders     moves a widening tail of a group (a cast, a broadcast) to the groups that read it
//   move-views       moves a permutation from the product that reads it to the group that makes its operand
//
//       max ──▶ sub ──▶ exp ──▶ sum ──▶ div          {max} {sub, exp} {sum} {div}  ▶  one group, one row kernel
//                         └──────────────▶
//
// Unchanged groups keep their names. name_groups names new ones.
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
