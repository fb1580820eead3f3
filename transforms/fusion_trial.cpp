#include "transforms/fusion_trial.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/spelling.h"

namespace fusec {
namespace {

constexpr std::uint32_t kLargestLimitTried = 1u << 16;

// The greatest pattern kind of a node on the path that this rule accepts.
OpPattern allowed_kind(FusionRule rule) {
  switch (rule) {
    case FusionRule::kAnchorNeedsElementwise:
      return OpPattern::kElemwise;
    case FusionRule::kAnchorBlockedBetween:
    case FusionRule::kAnchorBlockedAtEnd:
      return OpPattern::kBroadcast;
    default:
      return OpPattern::kInjective;
  }
}

bool is_about_kinds(FusionRule rule) {
  switch (rule) {
    case FusionRule::kAnchorNeedsElementwise:
    case FusionRule::kAnchorBlockedBetween:
    case FusionRule::kAnchorBlockedAtEnd:
    case FusionRule::kSimpleNeedsSimplePath:
    case FusionRule::kSimpleBlockedBetween:
    case FusionRule::kSimpleBlockedAtEnd:
    case FusionRule::kInjectiveBlockedBetween:
    case FusionRule::kInjectiveBlockedAtEnd:
    case FusionRule::kNothingJoinsTuple:
    case FusionRule::kTupleStaysAlone:
    case FusionRule::kTupleNeedsInjective:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string nothing_but_another_kind(const std::string& names, bool several, OpPattern wanted, OpPattern is) {
  return fmt::format("nothing that you can set: {} would have to be {} ({} {})", names, name(wanted),
                     several ? "they are" : "it is", name(is));
}

struct FusionTrial::Change {
  enum class Kind { kPattern, kInternal, kFree, kNodeLimit, kArgumentLimit, kNothing } kind;
  Vertex vertex = kNoVertex;
  OpPattern pattern = OpPattern::kElemwise;
  std::string text;
};

FusionTrial::FusionTrial(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan)
    : graph_(graph),
      kinds_(kinds),
      claims_(plan.claims),
      strategy_(plan.strategy),
      fusion_(build_fusion_graph(graph, kinds, pattern_source(plan.strategy), plan.claims)),
      arguments_(argument_table(graph, fusion_)),
      max_fused_ops_(plan.max_fused_ops),
      max_args_(plan.max_args) {
  run();
}

void FusionTrial::run() {
  post_.emplace(fusion_.forward);
  result_ = partition(fusion_.forward, *post_,
                      {.max_fused_ops = max_fused_ops_,
                       .max_args = max_args_,
                       .arguments = &arguments_,
                       .fusion_disabled = &fusion_.fusion_disabled,
                       .weight = &fusion_.weight});
}

bool FusionTrial::together(std::span<const Vertex> vertices) const {
  return std::ranges::all_of(vertices, [&](Vertex v) { return result_.root[v] == result_.root[vertices.front()]; });
}

std::string FusionTrial::name_of(Vertex v) const {
  return in_quotes(graph_.nodes[fusion_.node_of[v]].name);
}

// For a rule about the combined kind of the path, the partitioner notes the post-dominator; this finds the vertex with
// that kind. If the consumers of a value never meet, the blocker is the first graph output or unused value after it.
Vertex FusionTrial::precise_blocker(Vertex leader, const VertexDecision& decision) const {
  const ForwardGraph& forward = fusion_.forward;
  if (decision.rule == FusionRule::kNeverMeets) {
    for (const Vertex v : reachable(forward.edges, leader, kNoVertex)) {
      if (forward.external[v] || forward.consumers(v).empty()) return v;
    }
  }
  const bool by_way =
      decision.rule == FusionRule::kAnchorNeedsElementwise || decision.rule == FusionRule::kSimpleNeedsSimplePath;
  if (by_way) {
    for (const Vertex v : reachable(forward.edges, leader, post_->parent(leader))) {
      if (forward.pattern[v] == post_->pattern_to_parent(leader)) return v;
    }
  }
  return decision.blocker;
}

VertexObstacle FusionTrial::obstacle_of(Vertex leader, bool precise) const {
  VertexObstacle obstacle{.leader = leader, .meeting = post_->parent(leader), .decision = result_.decisions[leader]};
  if (precise) obstacle.decision.blocker = precise_blocker(leader, obstacle.decision);
  return obstacle;
}

// Follows post-dominators from a and b, always from the earlier group, until both are in one group.
std::vector<VertexObstacle> FusionTrial::obstacles(Vertex a, Vertex b) const {
  std::vector<VertexObstacle> found;
  Vertex left = result_.root[a], right = result_.root[b];
  while (left != right) {
    Vertex& earlier = left < right ? left : right;
    const Vertex later = std::max(left, right);
    found.push_back(obstacle_of(earlier, true));
    const Vertex meeting = found.back().meeting;
    if (meeting == kNoVertex) break;
    // If `earlier` had joined, every vertex up to its post-dominator would be in the group, including `later`.
    if (meeting > later && std::ranges::binary_search(reachable(fusion_.forward.edges, earlier, meeting), later)) break;
    earlier = result_.root[meeting];
  }
  std::ranges::sort(found, {}, &VertexObstacle::leader);
  return found;
}

// What would give the vertex a kind that is allowed: a custom op's is the front end's to say, others follow from the
// operator. Of a claim the node of the greatest kind is named, with its own kind. A library's claim is opaque whatever
// its nodes are: without its pattern they are not.
FusionTrial::Change FusionTrial::of_kind(Vertex v, OpPattern allowed) const {
  NodeId node = fusion_.node_of[v];
  for (NodeId n = fusion_.first_node(v); n < fusion_.node_of[v]; ++n)
    if (kinds_[n] > kinds_[node]) node = n;
  const std::string node_name = in_quotes(graph_.nodes[node].name);
  const OpPattern is = fusion_.is_item(v) ? fusion_.forward.pattern[v] : kinds_[node];
  Change change{.kind = Change::Kind::kNothing, .text = {}};
  for (const PatternClaim& claim : claims_)
    if (claim.code == GroupCode::kCublasLt && std::ranges::binary_search(claim.nodes, node)) {
      change.text = fmt::format("--disable-pattern={} may: it gave {} to a library", claim.pattern, node_name);
      return change;
    }
  if (graph_.nodes[node].op->custom && !fusion_.is_item(v) && fusion_.first_node(v) == fusion_.node_of[v]) {
    return {.kind = Change::Kind::kPattern,
            .vertex = v,
            .pattern = allowed,
            .text = fmt::format("give {} \"pattern\": \"{}\", if that is what it is (now {})", node_name, name(allowed),
                                name(is))};
  }
  change.text = nothing_but_another_kind((fusion_.is_item(v) ? "a result of " : "") + node_name, false, allowed, is);
  if (strategy_ == Strategy::kTvm) change.text += "; --strategy=full may, it does not ask for kinds alone";
  return change;
}

std::optional<FusionTrial::Change> FusionTrial::change_for(const VertexObstacle& obstacle) const {
  const ForwardGraph& forward = fusion_.forward;
  const VertexDecision& decision = obstacle.decision;
  const FusionRule rule = decision.rule;
  const Vertex blocker = decision.blocker;
  const auto stop_returning = [&](Vertex v) {
    return Change{
        .kind = Change::Kind::kInternal, .vertex = v, .text = "do not return " + name_of(v) + " as an output"};
  };
  if (rule == FusionRule::kFusionDisabled) {
    return Change{.kind = Change::Kind::kFree,
                  .vertex = obstacle.leader,
                  .text = "let " + name_of(obstacle.leader) + " be fused (--no-fuse, --no-fuse-node, \"fuse\")"};
  }
  if (rule == FusionRule::kGraphOutput) return stop_returning(obstacle.leader);
  if (rule == FusionRule::kNeverMeets && blocker != kNoVertex && forward.external[blocker] != 0 &&
      !forward.consumers(blocker).empty()) {
    return stop_returning(blocker);
  }
  if (rule == FusionRule::kTooManyNodes) return Change{.kind = Change::Kind::kNodeLimit};
  if (rule == FusionRule::kTooManyArguments) return Change{.kind = Change::Kind::kArgumentLimit};
  if (rule == FusionRule::kOpaqueSource) return of_kind(obstacle.leader, OpPattern::kElemwise);
  if (!is_about_kinds(rule) || blocker == kNoVertex) return std::nullopt;
  const OpPattern allowed = allowed_kind(rule);
  if (fusion_.fusion_disabled[blocker]) {
    return Change{.kind = Change::Kind::kFree, .vertex = blocker, .text = "let " + name_of(blocker) + " be fused"};
  }
  if (forward.pattern[blocker] > allowed) return of_kind(blocker, allowed);
  const Vertex anchor = result_.anchor[result_.root[blocker]];
  if (anchor == kNoVertex) return std::nullopt;
  return Change{.kind = Change::Kind::kPattern,
                .vertex = anchor,
                .pattern = OpPattern::kOpaque,
                .text = "keep " + name_of(anchor) + " out of that group (--no-fuse-node)"};
}

std::optional<std::string> FusionTrial::suggest(const VertexObstacle& obstacle) const {
  const std::optional<Change> change = change_for(obstacle);
  if (!change) return std::nullopt;
  if (change->kind == Change::Kind::kNodeLimit) return "a larger --max-fused-ops";
  if (change->kind == Change::Kind::kArgumentLimit) return "a larger --max-args";
  return change->text;
}

bool FusionTrial::are_stopped_by(FusionRule rule, const std::vector<Vertex>& vertices) const {
  for (std::size_t i = 1; i < vertices.size(); ++i) {
    for (const VertexObstacle& o : obstacles(vertices[i - 1], vertices[i])) {
      if (o.decision.rule == rule) return true;
    }
  }
  return false;
}

// Finds by doubling and binary search the smallest limit at which the rule separates none of the vertices. Returns the
// option that sets it, "" if there is no such limit up to kLargestLimitTried.
std::string FusionTrial::raise_limit(FusionRule rule, const std::vector<Vertex>& vertices, std::uint32_t& limit,
                                     const char* option) {
  const auto is_too_small = [&](std::uint32_t tried) {
    limit = tried;
    run();
    return are_stopped_by(rule, vertices);
  };
  std::uint32_t too_small = limit, enough = limit * 2;
  while (is_too_small(enough)) {
    if (enough >= kLargestLimitTried) return {};
    too_small = enough;
    enough *= 2;
  }
  while (enough - too_small > 1) {
    const std::uint32_t middle = too_small + (enough - too_small) / 2;
    (is_too_small(middle) ? too_small : enough) = middle;
  }
  limit = enough;
  return option + std::to_string(limit);
}

std::optional<std::string> FusionTrial::remove(const VertexObstacle& obstacle, const std::vector<Vertex>& vertices) {
  std::optional<Change> change = change_for(obstacle);
  if (!change) return std::nullopt;
  switch (change->kind) {
    case Change::Kind::kNothing:
      return std::nullopt;
    case Change::Kind::kPattern:
      fusion_.forward.pattern[change->vertex] = change->pattern;
      break;
    case Change::Kind::kInternal:
      fusion_.forward.external[change->vertex] = 0;
      break;
    case Change::Kind::kFree:
      fusion_.forward.pattern[change->vertex] = kinds_[fusion_.node_of[change->vertex]];
      fusion_.fusion_disabled[change->vertex] = 0;
      break;
    case Change::Kind::kNodeLimit:
      change->text = raise_limit(obstacle.decision.rule, vertices, max_fused_ops_, "--max-fused-ops=");
      break;
    case Change::Kind::kArgumentLimit:
      change->text = raise_limit(obstacle.decision.rule, vertices, max_args_, "--max-args=");
      break;
  }
  if (change->text.empty()) return std::nullopt;
  run();
  return change->text;
}

}  // namespace fusec
