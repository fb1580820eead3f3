#include "ir/fusion_decision.h"

#include <array>

namespace fusec {
namespace {

struct RuleText {
  std::string_view name, sentence;
};

RuleText text(FusionRule rule) {
  switch (rule) {
    case FusionRule::kUndecided:
      return {"undecided", "nothing was decided: the strategy fuses nothing"};
    case FusionRule::kJoined:
      return {"joined", "it was joined"};
    case FusionRule::kFusionDisabled:
      return {"kept_apart", "it is kept out of fusion (--no-fuse, --no-fuse-node or \"fuse\": false)"};
    case FusionRule::kGraphOutput:
      return {"graph_output", "it is a graph output: stored anyway, it never fuses forward"};
    case FusionRule::kUnused:
      return {"unused", "nothing uses it"};
    case FusionRule::kNeverMeets:
      return {"never_meets", "its consumers never meet again: no later node post-dominates it"};
    case FusionRule::kOpaqueSource:
      return {"opaque_source", "it is opaque: nothing is known about it, so it fuses with nothing"};
    case FusionRule::kReductionEndsGroup:
      return {"reduction_ends_group", "it is a reduction: nothing follows a reduction in its group"};
    case FusionRule::kTooManyNodes:
      return {"too_many_nodes", "the group would count more nodes than the limit allows"};
    case FusionRule::kTooManyArguments:
      return {"too_many_arguments", "the kernel would have more arguments than the limit allows"};
    case FusionRule::kAnchorNeedsElementwise:
      return {"anchor_needs_elementwise",
              "it is a complex op (or leads a group that holds one): only elementwise nodes follow such an op in its "
              "group, and one on the way to the post-dominator is not elementwise"};
    case FusionRule::kAnchorBlockedBetween:
      return {"anchor_blocked_between",
              "it is a complex op (or leads a group that holds one): a node on the way is in a group that is more than "
              "broadcast"};
    case FusionRule::kAnchorBlockedAtEnd:
      return {"anchor_blocked_at_end",
              "it is a complex op (or leads a group that holds one), and its post-dominator's group is more than "
              "broadcast: a group holds one complex op at most"};
    case FusionRule::kSimpleNeedsSimplePath:
      return {"simple_needs_simple_path",
              "an elementwise or broadcast node joins only through injective nodes or into a reduction, and a node on "
              "the way (or the post-dominator) is a complex op, a tuple or opaque"};
    case FusionRule::kSimpleBlockedBetween:
      return {"simple_blocked_between",
              "a node between it and its post-dominator is in a group that is more than injective"};
    case FusionRule::kSimpleBlockedAtEnd:
      return {"simple_blocked_at_end", "its post-dominator's group is a tuple or opaque"};
    case FusionRule::kInjectiveBlockedBetween:
      return {"injective_blocked_between",
              "an injective node joins only injective groups, and a node between it and its post-dominator is in one "
              "that is not"};
    case FusionRule::kInjectiveBlockedAtEnd:
      return {"injective_blocked_at_end",
              "an injective node joins only injective groups, and its post-dominator's group is a reduction, holds a "
              "complex op, or is opaque"};
    case FusionRule::kNothingJoinsTuple:
      return {"nothing_joins_tuple",
              "its post-dominator is a tuple, which nothing joins before the tuple itself "
              "has joined an injective node"};
    case FusionRule::kTupleStaysAlone:
      return {"tuple_stays_alone", "its post-dominator is a tuple that joined no injective node"};
    case FusionRule::kTupleNeedsInjective:
      return {"tuple_needs_injective", "only injective nodes join a tuple, and one on the way is more than injective"};
    case FusionRule::kNotOneKernel:
      return {"not_one_kernel",
              "lowered together they are more than one kernel: something between them must be stored"};
    case FusionRule::kWorseForm:
      return {"worse_form",
              "together they are one kernel, but of a form that is worse than what one of them has alone"};
    case FusionRule::kMoreBytes:
      return {"more_bytes", "together they would move more bytes than apart"};
    case FusionRule::kPredictedSlower:
      return {"predicted_slower", "together they are predicted to take longer than apart"};
    case FusionRule::kClosesCycle:
      return {"closes_cycle",
              "a third group needs the one's result and the other needs that group's, or is too far away"};
    case FusionRule::kNotTried:
      return {"not_tried",
              "the trials of one compilation were spent: the model has too many groups of ever new shapes"};
    case FusionRule::kGivenPlan:
      return {"given_plan", "the given plan has it so"};
    case FusionRule::kClaimed:
      return {"claimed", "a pattern claimed it before the partitioner ran"};
    case FusionRule::kPrepared:
      return {"prepared",
              "it depends on constants alone: it is computed once for each set of weights, not at a launch"};
  }
  return {};
}

}  // namespace

std::string_view name(FusionRule rule) {
  return text(rule).name;
}
std::string_view sentence(FusionRule rule) {
  return text(rule).sentence;
}

std::string_view stage(FusionRule rule, std::uint8_t phase) {
  constexpr std::array<std::string_view, 3> kPhases = {"phase 1", "phase 2", "phase 3"};
  const bool asked = rule != FusionRule::kUndecided && rule != FusionRule::kGivenPlan && rule != FusionRule::kClaimed &&
                     rule != FusionRule::kPrepared;
  if (!asked) return "";
  return phase < kPhases.size() ? kPhases[phase] : "merging";
}

}  // namespace fusec
