#include "transforms/prepare.h"

#include <algorithm>
#include <vector>

#include "analysis/annotate.h"
#include "analysis/constant_nodes.h"
#include "analysis/value_bytes.h"
#include "transforms/partition_report.h"

namespace fusec {
namespace {

constexpr std::int64_t kMostGrowth = 2;         // most bytes of a result per byte of the constants it is made of
constexpr std::int64_t kSmallBytes = 16 << 20;  // bytes that any result may have
constexpr std::int64_t kMostBytes = 64 << 20;   // bytes of all results, plus kMostGrowth times all constants
constexpr std::uint8_t kPreparePhase = 4;       // in decisions: a merge phase, which prepared groups take no part in
constexpr std::int64_t kCeiling = std::int64_t{1} << 60;

std::int64_t added(std::int64_t a, std::int64_t b) {
  return std::min(kCeiling, a + b);
}

// Whether the op only moves elements, which is index arithmetic in the kernel that reads its result.
bool only_moves(const OpDef& op) {
  if (op.family == "creation") return true;
  return op.view || (op.family == "movement" && op.name != "concat" && op.name != "stack");
}

// Tracks the memory left for prepared results, and the constants that each node is made of.
class PreparedMemory {
 public:
  explicit PreparedMemory(const Graph& graph) : graph_(graph), bytes_(graph), sources_(graph.nodes.size(), -1) {
    for (const Constant& constant : graph.constants)
      if (!constant.data && !has_symbols(graph.tensor(constant.value).shape))
        left_ = added(left_, kMostGrowth * std::min(kCeiling / kMostGrowth, bytes_.of(constant.value)));
  }

  std::int64_t of(ValueId v) { return bytes_.of(v); }
  std::int64_t results_of(const Node& node) {
    std::int64_t sum = 0;
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v) sum = added(sum, bytes_.of(v));
    return sum;
  }

  // Call it for the constant nodes in topological order.
  void note_sources(NodeId n) {
    sources_[n] = 0;
    for (const ValueId v : graph_.nodes[n].inputs) {
      if (v == kNone) continue;
      const NodeId producer = graph_.value(v).producer;
      sources_[n] = added(sources_[n], producer == kNone ? bytes_.of(v) : sources_[producer]);
    }
  }

  bool is_in_proportion(NodeId n) {
    const std::int64_t bytes = results_of(graph_.nodes[n]);
    return bytes <= kSmallBytes || bytes / kMostGrowth <= sources_[n];
  }
  // Reserves the bytes. Returns false if too few are left.
  bool take(std::int64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

 private:
  const Graph& graph_;
  ValueBytes bytes_;
  std::vector<std::int64_t> sources_;  // by constant node: bytes of the constants that it is made of
  std::int64_t left_ = kMostBytes;
};

class Marking {
 public:
  explicit Marking(Graph& graph)
      : graph_(graph), constant_(find_constant_nodes(graph)), memory_(graph), fly_(graph.nodes.size()) {}

  void run() {
    if (std::ranges::find(constant_, 1) == constant_.end()) return;
    for (NodeId n = 0; n < constant_.size(); ++n)
      if (constant_[n]) weigh(n);
    // Backward walk: nodes of the launch request their constant operands. A requested node that is better stored is
    // prepared, and with it all nodes that it needs.
    std::vector<std::uint8_t> asked(constant_.size(), 0);
    for (NodeId n = static_cast<NodeId>(constant_.size()); n-- > 0;) {
      Node& node = graph_.nodes[n];
      if (constant_[n] && asked[n] && !node.prepared && fly_[n].better_stored)
        node.prepared = memory_.take(memory_.results_of(node));
      if (constant_[n] && !asked[n] && !node.prepared) continue;
      for (const ValueId v : node.inputs) {
        const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
        if (producer == kNone || !constant_[producer]) continue;
        asked[producer] = 1;
        if (node.prepared) graph_.nodes[producer].prepared = true;
      }
    }
  }

 private:
  // The cost of computing a node's results inside the kernel that reads them.
  struct OnTheFly {
    std::int64_t bytes = 0;      // bytes to read
    bool computes = false;       // more than index arithmetic
    bool possible = true;        // false: a kernel of its own is needed
    bool bounded = true;         // every result that must be stored for it is within the growth limit
    bool better_stored = false;  // loading the stored results costs no more
  };

  void weigh(NodeId n) {
    const Node& node = graph_.nodes[n];
    memory_.note_sources(n);
    OnTheFly& fly = fly_[n];
    const bool moves = only_moves(*node.op);
    fly.possible = moves || derived_pattern(graph_, node, PatternSource::kFormula) <= OpPattern::kInjective;
    fly.bounded = fly.possible || memory_.is_in_proportion(n);
    fly.computes = !moves;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == kNone || std::find(node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(i), v) !=
                            node.inputs.begin() + static_cast<std::ptrdiff_t>(i))
        continue;
      const NodeId producer = graph_.value(v).producer;
      if (producer != kNone) fly.bounded = fly.bounded && fly_[producer].bounded;
      const bool stored = producer == kNone || fly_[producer].better_stored;
      fly.bytes = added(fly.bytes, stored ? memory_.of(v) : fly_[producer].bytes);
      if (stored) continue;
      fly.computes = fly.computes || fly_[producer].computes;
      fly.possible = fly.possible && fly_[producer].possible;
    }
    const std::int64_t results = memory_.results_of(node);
    if (moves || node.op->family == "indexing") fly.bytes = std::min(fly.bytes, results);
    fly.better_stored =
        fly.bounded && memory_.is_in_proportion(n) && (!fly.possible || (fly.computes && results <= fly.bytes));
  }

  Graph& graph_;
  const std::vector<std::uint8_t> constant_;
  PreparedMemory memory_;
  std::vector<OnTheFly> fly_;
};

class GroupPreparation {
 public:
  GroupPreparation(const Graph& graph, FusionPlan& plan)
      : graph_(graph), plan_(plan), constant_(find_constant_nodes(graph)), memory_(graph) {}

  void run() {
    if (std::ranges::find(constant_, 1) == constant_.end()) return;
    uses_ = uses_of(graph_);
    for (NodeId n = 0; n < constant_.size(); ++n)
      if (constant_[n]) memory_.note_sources(n);
    ready_.resize(plan_.groups.size(), 0);
    const std::vector<GroupInterface> interfaces = group_interfaces(graph_, plan_);
    for (GroupId g = 0; g < plan_.groups.size(); ++g)
      if (plan_.groups[g].prepared) take(interfaces[g]);
    for (GroupId g = 0; g < plan_.groups.size(); ++g) {
      FusionGroup& group = plan_.groups[g];
      if (!group.prepared && may_be_prepared(group) && reads_what_is_ready(interfaces[g])) {
        ready_[g] = is_only_views(graph_, group) ? 1 : 0;
        const bool in_proportion = std::ranges::all_of(
            interfaces[g].outputs, [&](ValueId v) { return memory_.is_in_proportion(graph_.value(v).producer); });
        group.prepared = !ready_[g] && in_proportion && take(interfaces[g]);
      }
      if (group.prepared) ready_[g] = 1;
    }
    take_views_along(interfaces);
    for (GroupId g = 0; g < plan_.groups.size(); ++g)
      if (plan_.groups[g].prepared) note(g, interfaces[g]);
  }

 private:
  bool may_be_prepared(const FusionGroup& group) const {
    return group.code == GroupCode::kFusec && group.claimed_by == kNone &&
           std::ranges::all_of(group.nodes, [&](NodeId n) { return constant_[n] != 0; });
  }

  bool reads_what_is_ready(const GroupInterface& interface) const {
    return std::ranges::all_of(interface.inputs, [&](ValueId v) {
      return graph_.value(v).kind != Value::Kind::kResult || ready_[plan_.group_of[graph_.value(v).producer]] != 0;
    });
  }

  bool take(const GroupInterface& interface) {
    std::int64_t bytes = 0;
    for (const ValueId v : interface.outputs) bytes = added(bytes, memory_.of(v));
    return memory_.take(bytes);
  }

  // Prepares the groups of views that prepared groups read.
  void take_views_along(const std::vector<GroupInterface>& interfaces) {
    for (GroupId g = static_cast<GroupId>(plan_.groups.size()); g-- > 0;) {
      if (!plan_.groups[g].prepared) continue;
      for (const ValueId v : interfaces[g].inputs)
        if (graph_.value(v).kind == Value::Kind::kResult)
          plan_.groups[plan_.group_of[graph_.value(v).producer]].prepared = true;
    }
  }

  // Records why the group is apart from its reader.
  void note(GroupId g, const GroupInterface& interface) {
    NodeId reader = kNone;
    for (const ValueId v : interface.outputs)
      for (const NodeId n : uses_.of(v))
        if (plan_.group_of[n] != g) reader = std::min(reader, n);
    plan_.decisions[plan_.groups[g].nodes.back()] = {
        .meeting = reader, .rule = FusionRule::kPrepared, .phase = kPreparePhase};
  }

  const Graph& graph_;
  FusionPlan& plan_;
  const std::vector<std::uint8_t> constant_;
  Uses uses_;
  PreparedMemory memory_;
  std::vector<std::uint8_t> ready_;  // by group: 1 if prepared, or only views of prepared results and constants
};

}  // namespace

void mark_prepared(CanonicalGraph& canonical) {
  Marking(canonical.graph).run();
}

void prepare_groups(const Graph& graph, FusionPlan& plan) {
  GroupPreparation(graph, plan).run();
}

}  // namespace fusec
