// Why two nodes share a kernel, or do not: the rules of the partitioner and of the fusion phases after it.
// The plan carries one decision per node; --explain, the ledger and --require-one-kernel print them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fusec {

enum class FusionRule : std::uint8_t {
  kUndecided,
  kJoined,
  kFusionDisabled,
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
// "phase 1" to "phase 3" of the partitioner, "merging" of what follows; empty where nobody was asked (a given plan).
// For people: machines get the number, which counts from 0.
std::string_view stage(FusionRule rule, std::uint8_t phase);

// Why a node is, or is not, in one group with its immediate post-dominator: the node where all paths from it to the
// outputs meet again.
struct FusionDecision {
  std::uint32_t meeting = 0xffffffff;  // NodeId of the post-dominator; 0xffffffff: there is none
  std::uint32_t blocker = 0xffffffff;  // NodeId that prevents fusion; kJoined: the node that caused the merge
  FusionRule rule = FusionRule::kUndecided;
  std::uint8_t phase = 0;
  // Predicted microseconds as one kernel and as separate kernels; 0: not predicted.
  float joined_us = 0, apart_us = 0;
};

}  // namespace fusec
