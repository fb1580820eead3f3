// Reductions of whole tensors (the norms of a model's gradients, means of several losses) that one group reads do not
// become one kernel with it where they have little in common:
//
//     {norm of g0} ─┐                       norms side by side (merge-siblings), each in blocks and vectors of its own,
//     {norm of g1} ─┼─▶ {stack, norm}       and one small kernel behind them
//     {norm of g2} ─┘
//
// As one kernel all blocks would go through the loops over all tensors one after the other, each with what threads
// combine, and whoever needs the result would have its blocks add up the partial results of all. A few of tensors alike
// share a loop, and a few of short ones are the work of one block: those may be taken in.
#pragma once

#include <span>
#include <vector>

#include "analysis/group_graph.h"
#include "ir/op_pattern.h"

namespace fusec {

// Of the groups whose results some group reads, those that are such reductions.
std::vector<GroupId> reductions_apart(const GroupGraph& groups, std::span<const OpPattern> kinds,
                                      std::span<const GroupId> producers);

}  // namespace fusec
