#include <algorithm>
#include <memory>
#include <set>

#include "schedule/lowering/trial_lowering.h"
#include "transforms/merge_groups.h"

namespace fusec {
namespace {

constexpr std::uint8_t kSplitPhase = 3;
constexpr std::size_t kMostNodesWithCare = 20'000;  // in larger graphs only groups with a reduction are examined
constexpr std::int64_t kMostSplitNodesTried = 20'000;
constexpr double kSplitRounding = 1 + 1e-9;
constexpr double kNearly = 1.01;  // a cut at the end of a claim, not between kernels, may cost this much

class Splitting {
 public:
  Splitting(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory)
      : graph_(graph), kinds_(kinds), plan_(plan), memory_(memory), lowering_(graph, memory, kMostSplitNodesTried) {}

  void run() {
    LargeVector<FusionGroup> groups;
    bool changed = false;
    for (GroupId g = 0; g < plan_.groups.size(); ++g) {
      FusionGroup& group = plan_.groups[g];
      const Parts parts = may_be_costly(group) ? parts_of(group) : Parts{};
      if (parts.empty()) {
        if (changed) groups.push_back(std::move(group));
        continue;
      }
      if (!changed) {
        groups.reserve(plan_.groups.size() + group.nodes.size());
        std::move(plan_.groups.begin(), plan_.groups.begin() + g, std::back_inserter(groups));
      }
      changed = true;
      for (const std::vector<NodeId>& part : parts) {
        FusionGroup& apart = groups.emplace_back();
        apart.nodes = part;
        apart.claimed_by = first_claim(part);
        classify_group(kinds_, apart);
      }
    }
    if (!changed) return;
    plan_.groups = std::move(groups);
    index_groups(graph_, plan_);
  }

 private:
  using Parts = std::vector<std::vector<NodeId>>;

  // The parts of a group in execution order; empty if the group stays whole.
  Parts parts_of(const FusionGroup& group) {
    const TrialResult together = lowered(group.nodes);
    if (!together.known) return {};
    if (group.claimed_by == kNone && is_costly(group, together)) return alone(group);
    return together.launches > 1 ? kernels_of(group, together) : Parts{};
  }

  static Parts alone(const FusionGroup& group) {
    Parts parts;
    for (const NodeId n : group.nodes) parts.push_back({n});
    return parts;
  }

  // Splits a group of several kernels between its kernels, so that each may merge with its own neighbours. Returns no
  // parts if they need more launches or more time than the group; kernels that recompute common nodes would.
  Parts kernels_of(const FusionGroup& group, const TrialResult& together) {
    Parts parts;
    std::vector<NodeId> left(group.nodes.begin(), group.nodes.end());
    for (const std::uint32_t place : together.stored) {
      const NodeId stored = group.nodes[place];
      if (!std::ranges::binary_search(left, stored)) continue;
      std::vector<NodeId>& part = parts.emplace_back(needed_for(stored, left));
      std::vector<NodeId> rest;
      std::ranges::set_difference(left, part, std::back_inserter(rest));
      left = std::move(rest);
    }
    if (left.empty() || parts.empty()) return {};
    parts.push_back(std::move(left));
    std::uint32_t launches = 0;
    double seconds = 0;
    for (const std::vector<NodeId>& part : parts) {
      const TrialResult& result = lowered(part);
      if (!result.known || !holds_whole_claims(part)) return {};
      launches += result.launches;
      seconds += result.seconds;
    }
    if (launches > together.launches || seconds > kNearly * together.seconds) return {};
    for (std::size_t p = 0; p + 1 < parts.size(); ++p)
      plan_.decisions[parts[p].back()] = {
          .meeting = group.nodes.back(), .rule = FusionRule::kNotOneKernel, .phase = kSplitPhase};
    return parts;
  }

  // Of `nodes`: the node `stored`, the rest of its claim, and all that these need.
  std::vector<NodeId> needed_for(NodeId stored, std::span<const NodeId> nodes) {
    std::set<NodeId> needed{stored};
    if (const std::uint32_t claim = claim_of(stored); claim != kNone) needed.insert(plan_.claims[claim].nodes.back());
    std::vector<NodeId> found;
    for (auto n = nodes.rbegin(); n != nodes.rend(); ++n) {
      if (!needed.contains(*n)) continue;
      found.push_back(*n);
      for (const ValueId v : graph_.nodes[*n].inputs)
        if (v != kNone && graph_.value(v).producer != kNone) needed.insert(graph_.value(v).producer);
    }
    std::ranges::reverse(found);
    return found;
  }

  // The claim that a node is part of, kNone for none.
  std::uint32_t claim_of(NodeId n) {
    if (claim_of_.empty() && !plan_.claims.empty()) {
      claim_of_.assign(graph_.nodes.size(), kNone);
      for (std::uint32_t c = 0; c < plan_.claims.size(); ++c)
        for (const NodeId claimed : plan_.claims[c].nodes) claim_of_[claimed] = c;
    }
    return claim_of_.empty() ? kNone : claim_of_[n];
  }

  std::uint32_t first_claim(const std::vector<NodeId>& part) {
    std::uint32_t first = kNone;
    for (const NodeId n : part) first = std::min(first, claim_of(n));
    return first;
  }

  // Whether the part splits no claim.
  bool holds_whole_claims(const std::vector<NodeId>& part) {
    return std::ranges::all_of(part, [&](NodeId n) {
      const std::uint32_t claim = claim_of(n);
      return claim == kNone || std::ranges::includes(part, plan_.claims[claim].nodes);
    });
  }

  // Whether n is a reduction or scan, but no matrix product. A kernel may have to recompute it for every element of its
  // result.
  bool reduces(NodeId n) const {
    const std::string& family = graph_.nodes[n].op->family;
    return kinds_[n] == OpPattern::kOutEwiseFusable && family != "matrix" && family != "quantized";
  }

  bool may_be_costly(const FusionGroup& group) const {
    if (group.nodes.size() < 2 || group.code != GroupCode::kFusec || group.prepared) return false;
    const auto is_plain = [&](NodeId n) {
      return graph_.nodes[n].op->formula && kinds_[n] != OpPattern::kOpaque && kinds_[n] != OpPattern::kTuple;
    };
    if (!std::ranges::all_of(group.nodes, is_plain)) return false;
    return graph_.nodes.size() <= kMostNodesWithCare ||
           std::ranges::any_of(group.nodes, [&](NodeId n) { return reduces(n); });
  }

  const TrialResult& lowered(std::span<const NodeId> nodes) {
    if (!uses_) {
      uses_ = memory_.uses(graph_);
      is_output_.resize(graph_.value_count(), 0);
      for (const ValueId v : graph_.outputs) is_output_[v] = 1;
    }
    return lowering_.of(nodes, needed_of(graph_, *uses_, is_output_, nodes));
  }

  bool is_costly(const FusionGroup& group, const TrialResult& together) {
    double apart = 0;
    for (const NodeId n : group.nodes) {
      const TrialResult& alone = lowered(std::span(&n, 1));
      if (!alone.known) return false;
      apart += alone.seconds;
    }
    if (together.seconds <= kSplitRounding * apart) return false;
    for (std::size_t i = 0; i + 1 < group.nodes.size(); ++i)
      plan_.decisions[group.nodes[i]] = {.meeting = group.nodes.back(),
                                         .rule = FusionRule::kPredictedSlower,
                                         .phase = kSplitPhase,
                                         .joined_us = static_cast<float>(1e6 * together.seconds),
                                         .apart_us = static_cast<float>(1e6 * apart)};
    return true;
  }

  const Graph& graph_;
  std::span<const OpPattern> kinds_;
  FusionPlan& plan_;
  TrialMemory& memory_;
  std::shared_ptr<const Uses> uses_;     // made with is_output_ at the first trial
  std::vector<std::uint8_t> is_output_;  // by value
  std::vector<std::uint32_t> claim_of_;  // by node: index into FusionPlan::claims; made at the first claim_of call
  TrialLowering lowering_;
};

}  // namespace

void split_costly(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory) {
  Splitting(graph, kinds, plan, memory).run();
}

}  // namespace fusec
