#include <algorithm>
#include <memory>

#include "analysis/trial_lowering.h"
#include "transforms/merge_groups.h"

namespace fusec {
namespace {

constexpr std::uint8_t kPhase = 3;
constexpr std::size_t kMostNodesWithCare = 20'000;  // beyond, only groups of which it is likely are looked at
constexpr std::int64_t kMostNodesTried = 20'000;
constexpr double kRounding = 1 + 1e-9;

class Splitting {
 public:
  Splitting(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory)
      : graph_(graph), kinds_(kinds), plan_(plan), memory_(memory), lowering_(graph, memory, kMostNodesTried) {}

  void run() {
    LargeVector<FusionGroup> groups;
    bool changed = false;
    for (GroupId g = 0; g < plan_.groups.size(); ++g) {
      FusionGroup& group = plan_.groups[g];
      if (!may_be_costly(group) || !is_costly(group)) {
        if (changed) groups.push_back(std::move(group));
        continue;
      }
      if (!changed) {
        groups.reserve(plan_.groups.size() + group.nodes.size());
        std::move(plan_.groups.begin(), plan_.groups.begin() + g, std::back_inserter(groups));
      }
      changed = true;
      for (const NodeId n : group.nodes) {
        FusionGroup& alone = groups.emplace_back();
        alone.nodes = {n};
        classify_group(kinds_, alone);
      }
    }
    if (!changed) return;
    plan_.groups = std::move(groups);
    index_groups(graph_, plan_);
  }

 private:
  // What follows a node that reduces, but is no product, may have to compute that once for every element.
  bool reduces(NodeId n) const {
    const std::string& family = graph_.nodes[n].op->family;
    return kinds_[n] == OpPattern::kOutEwiseFusable && family != "matrix" && family != "quantized";
  }

  bool may_be_costly(const FusionGroup& group) const {
    if (group.nodes.size() < 2 || group.claimed_by != kNone || group.code != GroupCode::kFusec || group.prepared)
      return false;
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

  bool is_costly(const FusionGroup& group) {
    const TrialResult together = lowered(group.nodes);
    if (!together.known) return false;
    double apart = 0;
    for (const NodeId n : group.nodes) {
      const TrialResult& alone = lowered(std::span(&n, 1));
      if (!alone.known) return false;
      apart += alone.seconds;
    }
    if (together.seconds <= kRounding * apart) return false;
    for (std::size_t i = 0; i + 1 < group.nodes.size(); ++i)
      plan_.decisions[group.nodes[i]] = {.meeting = group.nodes.back(),
                                         .rule = FusionRule::kPredictedSlower,
                                         .phase = kPhase,
                                         .joined_us = static_cast<float>(1e6 * together.seconds),
                                         .apart_us = static_cast<float>(1e6 * apart)};
    return true;
  }

  const Graph& graph_;
  std::span<const OpPattern> kinds_;
  FusionPlan& plan_;
  TrialMemory& memory_;
  std::shared_ptr<const Uses> uses_;  // made with is_output_ when the first group is looked at
  std::vector<std::uint8_t> is_output_;
  TrialLowering lowering_;
};

}  // namespace

void split_costly(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory) {
  Splitting(graph, kinds, plan, memory).run();
}

}  // namespace fusec
