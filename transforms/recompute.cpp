#include <algorithm>

#include "analysis/group_graph.h"
#include "transforms/merge_groups.h"
#include "transforms/merge_trial.h"

namespace fusec {
namespace {

constexpr std::uint8_t kRecomputePhase = 5;
constexpr std::size_t kMostRecomputing = 8;  // readers that may recompute a group
constexpr std::size_t kMostNodes = 16;       // nodes of a recomputed group

class Recomputation {
 public:
  Recomputation(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory)
      : plan_(plan), kinds_(kinds), groups_(graph, plan, memory.uses(graph)), trial_(groups_, kinds, plan, memory) {}

  void run() {
    if (!plan_.recomputed.empty()) return;
    bool changed = false;
    for (const GroupId g : groups_.order()) changed |= put_into_readers(g);
    if (changed) groups_.write_to(plan_, kinds_);
  }

 private:
  bool put_into_readers(GroupId g) {
    const std::span<const NodeId> nodes = groups_.nodes(g);
    if (nodes.size() > kMostNodes || !trial_.open(g)) return false;
    const bool free = std::ranges::all_of(nodes, [&](NodeId n) {
      const Node& node = groups_.graph().nodes[n];
      if (!node.op->deterministic || kinds_[n] > OpPattern::kInjective) return false;
      for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
        if (groups_.is_output(v)) return false;
      return true;
    });
    if (!free) return false;
    const std::vector<GroupId> readers = groups_.consumers(g);
    if (readers.size() < 2 || readers.size() > kMostRecomputing) return false;
    if (trial_.bytes(g) == 0 || !trial_.is_pointwise(g)) return false;
    if (!std::ranges::all_of(readers, [&](GroupId reader) { return trial_.open(reader); })) return false;
    const MergeAnswer answer = trial_.check_recompute(g, readers);
    const NodeId last = nodes.back();
    FusionDecision decision{.meeting = groups_.nodes(readers.front()).back(),
                            .rule = answer.rule,
                            .phase = kRecomputePhase,
                            .joined_us = answer.joined_us,
                            .apart_us = answer.apart_us};
    // Report a refusal only if times were predicted; an earlier phase has reported other reasons.
    if (!answer.yes() && answer.apart_us > 0)
      for (const GroupId reader : readers) plan_.refused.push_back({last, groups_.nodes(reader).back(), decision});
    const std::vector<NodeId> again(nodes.begin(), nodes.end());
    if (!answer.yes() || !groups_.contract(std::vector{g, readers.front()})) return false;
    for (std::size_t i = 1; i < readers.size(); ++i) groups_.add_recomputed(readers[i], again);
    plan_.decisions[last] = decision;
    return true;
  }

  FusionPlan& plan_;
  std::span<const OpPattern> kinds_;
  GroupGraph groups_;
  MergeTrial trial_;
};

}  // namespace

void recompute(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory) {
  Recomputation(graph, kinds, plan, memory).run();
}

}  // namespace fusec
