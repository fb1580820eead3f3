// Why two nodes share a kernel or not, as a value: the rules that the partitioner and the phases after it decide by.
// The plan carries one decision for each node; --explain, the ledger and --require-one-kernel only print them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fusec {

enum class FusionRule : std::uint8_t {
  kUndecided,
  kJoined,
  kKeptApart,
  kGraphOutput,
  kUnused,
  kNeverMeets,
  kOpaqueSource,
  kReductionEndsGroup,
  kTooManyNodes,
  kTooManyArguments,
  kAnchorNeedsElementwise,
  kAnchorBlockedBetween,
  kAnchorBlockedAtEnd,
  kSimpleNeedsSimplePath,
  kSimpleBlockedBetween,
  kSimpleBlockedAtEnd,
  kInjectiveBlockedBetween,
  kInjectiveBlockedAtEnd,
  kNothingJoinsTuple,
  kTupleStaysAlone,
  kTupleNeedsInjective,
  kNotOneKernel,
  kWorseForm,
  kMoreBytes,
  kPredictedSlower,
  kClosesCycle,
  kNotTried,
  kGivenPlan,
  kClaimed,
  kPrepared,
};
inline constexpr std::size_t kFusionRuleCount = static_cast<std::size_t>(FusionRule::kPrepared) + 1;

std::string_view name(FusionRule rule);      // "too_many_nodes": for machines
std::string_view sentence(FusionRule rule);  // "the group would have more nodes than the limit": for people
// "phase 1" to "phase 3" of the partitioner, "merging" of what follows; empty where nobody was asked (a given plan). For
// people: machines get the number, which counts from 0.
std::string_view stage(FusionRule rule, std::uint8_t phase);
std::optional<FusionRule> parse_fusion_rule(std::string_view name);

// Why a node is, or is not, in one group with the node where all ways onward from it meet again.
struct FusionDecision {
  std::uint32_t meeting = 0xffffffff;  // the node where its ways meet (a NodeId), none: they do not meet
  std::uint32_t blocker = 0xffffffff;  // what stands in the way; of kJoined: the node whose question brought it in
  FusionRule rule = FusionRule::kUndecided;
  std::uint8_t phase = 0;
  // Microseconds that those in question were predicted to take as one kernel and as they are; 0: nobody asked.
  float joined_us = 0, apart_us = 0;
};

}  // namespace fusec
