// Why nodes are, or are not, in one kernel: what --explain, --require-one-kernel and the ledger print.
//
//     matmul ──▶ relu ──▶ transpose        explain(matmul, transpose):
//                                          {matmul, relu} stays out of {transpose} in phase 1, since a complex op takes
//                                          only elementwise followers; the blocker is transpose; joining would save the
//                                          bytes of relu's result twice; nothing helps, transpose being injective
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/fusion_plan.h"
#include "transforms/fuse.h"

namespace fusec {

// One step at which a group was not joined to what follows it.
struct Obstacle {
  NodeId from = kNone;  // the last node of the group that asked
  NodeId to = kNone;    // the node it asked to join; kNone: there is none
  FusionRule rule = FusionRule::kUndecided;
  std::uint8_t phase = 0;
  NodeId blocker = kNone;             // the node because of which the answer was no; kNone: none in particular
  std::int64_t bytes_saved = 0;       // global memory traffic of a run that one kernel would save, at the hints
  std::string would_allow;            // the smallest change that would remove this obstacle, or that none would
  float joined_us = 0, apart_us = 0;  // as in FusionDecision
};

// An edge between two groups. In small graphs `would_allow` is what was tried and puts the two in one kernel, where
// something was found; else, and in larger ones, it removes the obstacle named, or says that nothing would.
struct LedgerEntry {
  NodeId from = kNone, to = kNone;
  FusionRule rule = FusionRule::kUndecided;
  std::uint8_t phase = 0;
  NodeId blocker = kNone;
  std::int64_t bytes_saved = 0;
  std::string would_allow;
  float joined_us = 0, apart_us = 0;  // as in FusionDecision
};

// What code generation made of a group: how many kernels, and what one stores for the next.
struct GroupKernels {
  std::uint32_t kernels = 0;
  std::vector<ValueId> stored;
};

// A node of the file that no kernel computes.
struct AbsentNode {
  std::string name;
  bool folded = false;  // its value is a constant; else no output needs it
};

struct Explanation {
  std::vector<NodeId> nodes;  // those asked about, in topological order, each once
  bool one_kernel = false;
  // Asked about, too, but rewritten away: which of `nodes` computes their values now.
  std::vector<std::pair<std::string, std::string>> standing_in;
  std::vector<AbsentNode> absent;  // asked about, too, but taken out by canonicalization: not among `nodes`
  // One group, and yet several kernels (see split_by_kernels): then `joined` is filled and `one_kernel` false.
  GroupKernels split;
  // Together: how each node came to the others (its decision). Apart: nothing.
  std::vector<FusionDecision> joined;
  std::vector<Obstacle> obstacles;  // apart: in order of execution
  std::int64_t bytes_saved = 0;     // apart: if the groups in question and between were one kernel
  // Apart: changes that, all together, were tried and do put the nodes in one kernel; empty where none was found.
  std::vector<std::string> would_allow;
  // Of one node: the edges of its group that were not fused.
  std::vector<LedgerEntry> edges;
  // What patterns did, and nearly did, to the nodes (see patterns/explain_patterns.h).
  std::vector<std::string> patterns;
};

// Throws Error(kInput) for a name that no node has.
std::vector<NodeId> find_nodes(const Graph& graph, std::span<const std::string> names);

Explanation explain(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan,
                    std::span<const NodeId> nodes);

// To an explanation that found the nodes in one group: whether code generation made one kernel of it.
void split_by_kernels(Explanation& explanation, const Graph& graph, GroupKernels made);

// Each edge between two groups, once, by producer and consumer.
std::vector<LedgerEntry> ledger(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan);

}  // namespace fusec
