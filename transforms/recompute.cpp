#include <algorithm>

#include "analysis/group_graph.h"
#include "transforms/merge_groups.h"
#include "transforms/merge_trial.h"

namespace fusec {
namespace {

constexpr std::uint8_t kPhase = 5;
constexpr std::size_t kMostReaders = 8;  // that compute a group again
constexpr std::size_t kMostNodes = 16;   // of a group that is computed again

class Recomputation {
 public:
  Recomputation(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, const Target& target)
      : plan_(plan), kinds_(kinds), groups_(graph, plan), trial_(groups_, kinds, plan, target) {}

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
    if (readers.size() < 2 || readers.size() > kMostReaders) return false;
    if (trial_.bytes(g) == 0 || !trial_.is_pointwise(g) || !pays(g, readers)) return false;
    const NodeId last = nodes.back(), meeting = groups_.nodes(readers.front()).back();
    const std::vector<NodeId> again(nodes.begin(), nodes.end());
    if (!groups_.contract(std::vector{g, readers.front()})) return false;
    for (std::size_t i = 1; i < readers.size(); ++i) groups_.add_recomputed(readers[i], again);
    plan_.decisions[last] = {.meeting = meeting, .rule = FusionRule::kJoined, .phase = kPhase};
    return true;
  }

  // Every reader is one kernel with it, in a form no worse, and all together read no more than they do now.
  bool pays(GroupId g, const std::vector<GroupId>& readers) {
    std::int64_t now = trial_.bytes(g), then = 0;
    for (const GroupId reader : readers) {
      std::int64_t bytes = 0;
      if (!trial_.open(reader) || trial_.ask_again(g, reader, bytes) != FusionRule::kJoined) return false;
      now += trial_.bytes(reader);
      then += bytes;
    }
    return then <= now;
  }

  FusionPlan& plan_;
  std::span<const OpPattern> kinds_;
  GroupGraph groups_;
  MergeTrial trial_;
};

}  // namespace

void recompute(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, const Target& target) {
  Recomputation(graph, kinds, plan, target).run();
}

}  // namespace fusec
