// From a graph and the pattern of each node to a finished plan: groups in execution order, named, every decision kept.
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
  std::uint32_t max_args_side_by_side = 0;  // of groups of several parts; 0: as max_args
  bool named = true;                        // false: groups change yet, and are named by name_groups at the end
  std::vector<PatternClaim> claims;         // by patterns, in order of their nodes
};

// Under `none` every node is alone; under `tvm` and `full` the three phases of transforms/partition decide.
FusionPlan fuse(const Graph& graph, std::span<const OpPattern> kinds, FuseOptions options);

// Notes on the graph that these ops and nodes stay alone (--no-fuse, --no-fuse-node). To be called before any
// rewriting. Throws Error(kInput) for a name that no node has.
void keep_apart(Graph& graph, std::span<const std::string> ops, std::span<const std::string> nodes);

}  // namespace fusec
