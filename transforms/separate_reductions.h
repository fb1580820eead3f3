// Finds reductions of whole tensors that must not merge into the group that reads them (the norms of a model's
// gradients, means of several losses):
//
//     {norm of g0} ─┐                       merge-siblings fuses the norms horizontally, each with its own blocks and
//     {norm of g1} ─┼─▶ {stack, norm}       vector width; one small kernel follows
//     {norm of g2} ─┘
//
// In one kernel every block would run the loops over all tensors in turn, each with its own block reduction. Two cases
// may merge: up to 4 reductions of equal size, which share a loop, and up to 8 short ones, which one block computes.
#pragma once

#include <span>
#include <vector>

#include "analysis/group_graph.h"
#include "ir/op_pattern.h"

namespace fusec {

// `producers` are the groups that one group reads. Returns those that must stay apart from it.
std::vector<GroupId> separate_reductions(const GroupGraph& groups, std::span<const OpPattern> kinds,
                                         std::span<const GroupId> producers);

}  // namespace fusec
