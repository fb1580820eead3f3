#include "analysis/fusion_rules.h"

namespace fusec {
namespace {

// A complex op, or a node that leads a group with one. Followers must be elementwise all the way.
JoinAnswer ask_anchor(const JoinQuestion& question) {
  if (question.phase != 0) return {};
  if (question.path_pattern != OpPattern::kElemwise) return {.rule = FusionRule::kAnchorNeedsElementwise};
  return {.rule = FusionRule::kJoined,
          .between = PatternSet::at_most(OpPattern::kBroadcast),
          .end = PatternSet::at_most(OpPattern::kBroadcast),
          .if_blocked_between = FusionRule::kAnchorBlockedBetween,
          .if_blocked_at_end = FusionRule::kAnchorBlockedAtEnd};
}

// An elementwise or broadcast node. Injective branches of a diamond may be in between, and the end may be a reduction
// or a complex op's group.
JoinAnswer ask_simple(const JoinQuestion& question) {
  if (question.path_pattern > OpPattern::kInjective && question.path_pattern != OpPattern::kCommReduce) {
    return {.rule = FusionRule::kSimpleNeedsSimplePath};
  }
  return {.rule = FusionRule::kJoined,
          .between = PatternSet::at_most(OpPattern::kInjective),
          .end = PatternSet::at_most(OpPattern::kOutEwiseFusable),
          .if_blocked_between = FusionRule::kSimpleBlockedBetween,
          .if_blocked_at_end = FusionRule::kSimpleBlockedAtEnd};
}

// An injective node or tuple. It waits for phase 1, so that complex ops take their followers first.
JoinAnswer ask_injective(const JoinQuestion& question) {
  if (question.phase != 1) return {};
  return {.rule = FusionRule::kJoined,
          .between = PatternSet::at_most(OpPattern::kInjective),
          .end = PatternSet::at_most(OpPattern::kInjective),
          .if_blocked_between = FusionRule::kInjectiveBlockedBetween,
          .if_blocked_at_end = FusionRule::kInjectiveBlockedAtEnd};
}

// A field of a tuple that phase 1 fused into an injective node.
JoinAnswer ask_tuple_field(const JoinQuestion& question) {
  if (question.source > OpPattern::kInjective || question.post_dominator != OpPattern::kTuple) return {};
  if (question.post_dominator_group > OpPattern::kInjective) return {.rule = FusionRule::kTupleStaysAlone};
  return {.rule = FusionRule::kJoined,
          .between = PatternSet::at_most(OpPattern::kInjective),
          .end = PatternSet::at_most(OpPattern::kInjective),
          .if_blocked_between = FusionRule::kTupleNeedsInjective,
          .if_blocked_at_end = FusionRule::kTupleNeedsInjective};
}

}  // namespace

FusionRule may_fuse_kind(OpPattern source) {
  if (source == OpPattern::kOpaque) return FusionRule::kOpaqueSource;
  if (source == OpPattern::kCommReduce) return FusionRule::kReductionEndsGroup;
  return FusionRule::kUndecided;
}

JoinAnswer may_join(const JoinQuestion& question) {
  if (question.phase == 2) return ask_tuple_field(question);
  if (question.post_dominator == OpPattern::kTuple) return {.rule = FusionRule::kNothingJoinsTuple};
  switch (question.source) {
    case OpPattern::kElemwise:
    case OpPattern::kBroadcast:
      return ask_simple(question);
    case OpPattern::kInjective:
    case OpPattern::kTuple:
      return ask_injective(question);
    case OpPattern::kOutEwiseFusable:
      return ask_anchor(question);
    case OpPattern::kCommReduce:
    case OpPattern::kOpaque:
      return {.rule = may_fuse_kind(question.source)};
  }
  return {};
}

}  // namespace fusec
