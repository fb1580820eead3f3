// Which nodes share a kernel: the plain value in which transforms and codegen meet.
//
//     gate ─┐                groups[0] = {gate}, groups[1] = {up}, groups[2] = {act, h}   in execution order
//     up ───┤
//     act(gate), h = act * up
//
// The plan belongs to one graph (that after the transforms); nodes are named by NodeId. It carries why each node is,
// or is not, in one group with what follows it.
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

// Who makes a group's code.
enum class GroupCode : std::uint8_t {
  kFusec,     // kernels of our own
  kExternal,  // a custom op's launcher
  kCublasLt,
  kNccl,
};
std::string_view name(GroupCode code);

struct FusionGroup {
  std::string name;            // unique among the groups, an identifier
  ShortList<NodeId, 4> nodes;  // in topological order
  NodeId anchor = kNone;       // the complex op that the group is built around, if it has one
  OpPattern pattern = OpPattern::kOpaque;
  GroupCode code = GroupCode::kFusec;
  std::uint32_t claimed_by = kNone;  // in FusionPlan::claims: the first that its nodes hold
  bool prepared = false;  // computed once for each set of weights: reads constants and other such groups alone
};

// Nodes that a pattern made one group of before the partitioner ran.
struct PatternClaim {
  std::string pattern;        // its name, "fusec.swiglu"
  std::vector<NodeId> nodes;  // in topological order, side by side in the graph
  GroupCode code = GroupCode::kFusec;
  std::vector<std::pair<std::string, std::string>> attributes;  // as the pattern declares them: "alpha", "1.702"
  std::vector<std::pair<std::string, NodeId>> parts;            // the pattern's names for nodes: "gate", ...
  std::vector<ValueId> bound_constants;  // that belong to the group, where the pattern binds them
};

// A node that several groups compute: `group` is one that does so after the first.
struct Recomputed {
  GroupId group;
  NodeId node;
};

// A group that a later phase wanted to be one with another that reads its results, and why it is not. Groups by their
// last nodes at the time.
struct RefusedMerge {
  NodeId from, to;
  FusionDecision decision;
};

struct FusionPlan {
  Strategy strategy = Strategy::kFull;
  // Limits of a group's parts (analysis/group_components.h).
  std::uint32_t max_fused_ops = 256;
  std::uint32_t max_args = 0;               // 0: no limit
  std::uint32_t max_args_side_by_side = 0;  // of all parts together; 0: as max_args
  LargeVector<FusionGroup> groups;          // in execution order
  std::vector<PatternClaim> claims;         // in order of their nodes
  std::vector<Recomputed> recomputed;       // by group, then node
  std::vector<GroupId> group_of;            // of each node: the first group that computes it
  LargeVector<FusionDecision> decisions;    // of each node
  std::vector<RefusedMerge> refused;        // in the order in which they were asked; the last about two groups counts
};

// What a group takes and gives: values, each once. Inputs by first use, constants included, numbers and dimensions
// not; outputs are what a graph output or a node outside the group needs, in order of definition.
struct GroupInterface {
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};
std::vector<GroupInterface> group_interfaces(const Graph& graph, const FusionPlan& plan);

// Fills in `group_of` and `recomputed` from `groups`.
void index_groups(const Graph& graph, FusionPlan& plan);

// Brings the groups (each node is in one) into execution order, every group after those whose values it reads, unless
// they are in one: by their last nodes else. False where there is no such order; the plan is then as it was.
bool order_groups(const Graph& graph, FusionPlan& plan);

// Where order_groups found no order: groups of which each needs a result of the next, and the last of the first.
std::vector<GroupId> find_group_cycle(const Graph& graph, const FusionPlan& plan);

// What the members say of a group: the complex op among them (the first), and the kind: out_ewise_fusable where there
// is such an op, else that of the last node, whose value the others only prepare.
void classify_group(std::span<const OpPattern> kinds, FusionGroup& group);

// Gives each group a name that says what it computes ("fused_silu_mul"; a single node's is its op), made unique.
void name_groups(const Graph& graph, FusionPlan& plan);

// An identifier made of arbitrary text, for names of groups and kernels: letters, digits and '_'.
std::string cleaned_name(std::string_view text);
// Such an identifier, of 128 bytes at most.
bool is_group_name(std::string_view text);

}  // namespace fusec
