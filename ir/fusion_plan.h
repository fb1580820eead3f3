// Which nodes share a kernel. This plain value is the interface between transforms and codegen.
//
//     gate ─┐                groups[0] = {gate}, groups[1] = {up}, groups[2] = {act, h}   in execution order
//     up ───┤
//     act(gate), h = act * up
//
// The plan belongs to one graph, the one after the transforms, and names nodes by NodeId. It also holds why each node
// is, or is not, in one group with its followers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/fusion_decision.h"
#include "ir/graph.h"
#include "ir/large_vector.h"
#include "ir/op_pattern.h"

namespace fusec {

using GroupId = std::uint32_t;

enum class Strategy : std::uint8_t {
  kUnfused,  // "none": every node alone
  kTvm,      // the three phases, on the graph as given
  kFull,     // canonicalization, patterns, the three phases, further phases
};
std::string_view name(Strategy strategy);
std::optional<Strategy> parse_strategy(std::string_view text);

// Where a group's code comes from.
enum class GroupCode : std::uint8_t {
  kFusec,     // kernels that fusec emits
  kExternal,  // a custom op's launcher
  kCublasLt,
  kNccl,
};
std::string_view name(GroupCode code);

struct FusionGroup {
  std::string name;            // unique among the groups, an identifier
  ShortList<NodeId, 4> nodes;  // in topological order
  NodeId anchor = kNone;       // the group's complex op; kNone without one
  OpPattern pattern = OpPattern::kOpaque;
  GroupCode code = GroupCode::kFusec;
  std::uint32_t claimed_by = kNone;  // index into FusionPlan::claims of the first claim among its nodes
  bool prepared = false;             // computed once per set of weights; reads only constants and other prepared groups
};

// Nodes that a pattern made one group before the partitioner ran.
struct PatternClaim {
  std::string pattern;        // its name, "fusec.swiglu"
  std::vector<NodeId> nodes;  // in topological order, side by side in the graph
  GroupCode code = GroupCode::kFusec;
  std::vector<std::pair<std::string, std::string>> attributes;  // declared by the pattern: "alpha", "1.702"
  std::vector<std::pair<std::string, NodeId>> parts;            // the pattern's names for nodes: "gate", ...
  std::vector<ValueId> bound_constants;                         // constants that the pattern binds to the group
};

// A node that several groups compute. `group` is any of them but the first.
struct Recomputed {
  GroupId group;
  NodeId node;
};

// Two groups that a phase after the partitioner tried to merge, and why it did not. `to` reads results of `from`. Each
// group is named by the node that was its last at the time.
struct RefusedMerge {
  NodeId from, to;
  FusionDecision decision;
};

struct FusionPlan {
  Strategy strategy = Strategy::kFull;
  // Limits of a group's connected parts (analysis/group_components.h).
  std::uint32_t max_fused_ops = 256;
  std::uint32_t max_args = 0;               // 0: no limit
  std::uint32_t max_args_side_by_side = 0;  // all parts of a group together; 0: as max_args
  LargeVector<FusionGroup> groups;          // in execution order
  std::vector<PatternClaim> claims;         // in order of their nodes
  std::vector<Recomputed> recomputed;       // by group, then node
  std::vector<GroupId> group_of;            // by NodeId: the first group that computes it
  LargeVector<FusionDecision> decisions;    // by NodeId
  std::vector<RefusedMerge> refused;        // in order of time; of several about two groups the last counts
};

// The values that a group reads and writes, each once. Inputs include constants but no numbers and dimensions, in order
// of first use. Outputs are graph outputs and values that other groups read, in order of definition.
struct GroupInterface {
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};
std::vector<GroupInterface> group_interfaces(const Graph& graph, const FusionPlan& plan);

// Fills in `group_of` and `recomputed` from `groups`.
void index_groups(const Graph& graph, FusionPlan& plan);

// Sorts the groups into execution order: every group after the groups that it reads from. Groups that are in execution
// order already stay as they are; else ties go by the groups' last nodes. Every node must be in a group. Returns false,
// with the order unchanged, when there is no such order.
bool order_groups(const Graph& graph, FusionPlan& plan);

// For a plan that order_groups could not order: a cycle of groups. Each reads a result of the next, the last reads a
// result of the first.
std::vector<GroupId> find_group_cycle(const Graph& graph, const FusionPlan& plan);

// Sets the group's anchor (its first complex op) and pattern: out_ewise_fusable with a complex op, else the kind of the
// last node. `kinds` holds the pattern of each node of the graph.
void classify_group(std::span<const OpPattern> kinds, FusionGroup& group);

// Gives each group a unique name from its ops: "fused_silu_mul"; the op's name for a single node.
void name_groups(const Graph& graph, FusionPlan& plan);

// Whether the text is a name that a group may have: letters, digits and '_', at most 128 bytes.
bool is_group_name(std::string_view text);

}  // namespace fusec
