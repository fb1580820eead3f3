// Makes a fusion plan from a graph and the pattern kind of each node: named groups in execution order, with the
// decision about each node.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/fusion_plan.h"

namespace fusec {

struct FuseOptions {
  Strategy strategy = Strategy::kFull;
  std::uint32_t max_fused_ops = 256;
  std::uint32_t max_args = 0;               // 0: no limit
  std::uint32_t max_args_side_by_side = 0;  // for groups of several independent parts; 0: as max_args
  bool named = true;                        // false: later phases change groups, and name_groups names them at the end
  std::vector<PatternClaim> claims;         // in order of their nodes
};

// Under `none` each node is a group of its own. Under `tvm` and `full` the phases of transforms/partition.h decide.
FusionPlan fuse(const Graph& graph, std::span<const OpPattern> kinds, FuseOptions options);

// Marks these ops and nodes as not to be fused (--no-fuse, --no-fuse-node). Call it before any rewriting. Throws
// Error(kInput) for a node name or an op that does not exist.
void disable_fusion(Graph& graph, std::span<const std::string> ops, std::span<const std::string> nodes);

}  // namespace fusec
