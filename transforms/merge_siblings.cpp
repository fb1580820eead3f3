#include <algorithm>
#include <array>
#include <utility>

#include "analysis/group_graph.h"
#include "analysis/value_bytes.h"
#include "ir/budget.h"
#include "ir/large_vector.h"
#include "transforms/merge_groups.h"
#include "transforms/merge_trial.h"
#include "transforms/separate_reductions.h"

namespace fusec {
namespace {

constexpr std::uint8_t kSiblingPhase = 4;
constexpr std::ptrdiff_t kMostSiblingReaders = 8,
                         kMostReadersInHaste = 2;  // readers of a value, on either side, that are tried
constexpr std::size_t kMostOpen = 4;               // groups that are open for horizontal fusion at a time
constexpr std::int64_t kLaunchBytes = 8 << 20;     // bytes that take about as long as a launch

class SiblingMerger {
 public:
  SiblingMerger(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory)
      : plan_(plan),
        kinds_(kinds),
        groups_(graph, plan, memory.uses(graph)),
        trial_(groups_, kinds, plan, memory),
        bytes_(graph) {}

  void run() {
    const std::vector<GroupId> order = groups_.order();
    has_siblings_.assign(groups_.size(), 0);
    // Merge readers with results of one type first, because products of one shape share tiles.
    asked_.assign(groups_.graph().value_count(), kNone);
    for (const GroupId g : order)
      if (groups_.alive(g) && trial_.open(g)) merge_readers_of(g, Readers::kAlike);
    asked_.assign(asked_.size(), kNone);
    for (const GroupId g : order)
      if (has_siblings_[g] != 0 && groups_.alive(g) && trial_.open(g)) merge_readers_of(g, Readers::kAll);
    std::vector<GroupId> taking;
    GroupId previous = kNone;
    for (const GroupId g : groups_.order()) {
      count_step();
      if (groups_.nodes(g).empty()) continue;
      if (trial_.open(g)) put_with_siblings(g, previous, taking);
      previous = g;
    }
    std::ranges::sort(joined_);
    joined_.erase(std::unique(joined_.begin(), joined_.end()), joined_.end());
    for (const GroupId g : std::vector<GroupId>(joined_))
      if (!trial_.in_haste() && groups_.alive(g)) take_producers(g);
    if (changed_) groups_.write_to(plan_, kinds_);
  }

 private:
  enum class Readers : std::uint8_t { kAlike, kAll };

  // Whether both groups end with the same op and result type.
  bool are_alike(GroupId a, GroupId b) const {
    const Graph& graph = groups_.graph();
    const Node& one = graph.nodes[groups_.nodes(a).back()];
    const Node& other = graph.nodes[groups_.nodes(b).back()];
    return one.op == other.op && graph.value(one.first_output).type == graph.value(other.first_output).type;
  }

  // Merges groups that read a value of group g into one kernel that reads the value once.
  void merge_readers_of(GroupId g, Readers readers) {
    nodes_.assign(groups_.nodes(g).begin(), groups_.nodes(g).end());  // a copy, because g may take in other groups
    for (const NodeId n : nodes_) {
      count_step();
      for (const ValueId v : groups_.graph().nodes[n].inputs) {
        if (v == kNone || std::exchange(asked_[v], n) == n) continue;
        const auto users = groups_.uses().of(v);
        if (users.size() < 2 || groups_.graph().value(v).kind == Value::Kind::kNumber) continue;
        // Examine readers on both sides of n: groups are not ordered as their readers are.
        const auto most = static_cast<std::ptrdiff_t>(trial_.in_haste() ? kMostReadersInHaste : kMostSiblingReaders);
        const std::ptrdiff_t at = std::ranges::lower_bound(users, n) - users.begin();
        const std::ptrdiff_t first = std::max<std::ptrdiff_t>(at - most, 0);
        const std::ptrdiff_t end = std::min(at + 1 + most, std::ssize(users));
        for (std::ptrdiff_t i = end; i-- > first;) {
          const GroupId other = groups_.group_of(users[i]);
          if (other == g) continue;
          has_siblings_[g] = 1;
          if (readers == Readers::kAll || are_alike(other, g)) merge_with(users[i], n, g);
        }
      }
    }
  }

  // Merges the group of node `before` into g, if it comes first. Both `before` and node n of g read one value.
  void merge_with(NodeId before, NodeId n, GroupId g) {
    const GroupId other = groups_.group_of(before);
    if (!groups_.alive(g) || other == g || !groups_.is_before(other, g) || !trial_.open(other)) return;
    const std::uint64_t kind = trial_.in_haste() ? trial_.kind_of_question(other, g, before, n) : 0;
    if (trial_.hopeless(kind)) return;
    const bool stays = trial_.bytes(g) == 0 || trial_.bytes(other) == 0 || is_apart(other, g);
    const MergeAnswer answer = stays ? MergeAnswer{.rule = FusionRule::kNotTried} : trial_.ask(std::array{other, g});
    trial_.note(kind, answer.yes() && join(other, g, answer));
  }

  // Whether g reads results of `other` and separate_reductions keeps the two apart.
  bool is_apart(GroupId other, GroupId g) const {
    const std::vector<GroupId> producers = groups_.producers(g);
    if (std::ranges::find(producers, other) == producers.end()) return false;
    const std::vector<GroupId> apart = separate_reductions(groups_, kinds_, producers);
    return std::ranges::find(apart, other) != apart.end();
  }

  void put_with_siblings(GroupId g, GroupId previous, std::vector<GroupId>& taking) {
    // In large graphs skip matrix products without lowering them.
    if (trial_.in_haste() && plan_.groups[g].pattern == OpPattern::kOutEwiseFusable) return;
    const bool waits = may_wait(g);
    if (waits)
      for (GroupId& other : taking)
        if (join_siblings(other, g)) {
          other = g;
          return;
        }
    // Otherwise try the group that runs directly before g, if one of the two may wait.
    if (previous != kNone && trial_.open(previous) && !trial_.in_haste() && (waits || may_wait(previous)) &&
        std::ranges::find(taking, previous) == taking.end() && join_siblings(previous, g))
      return;
    if (!waits) return;
    taking.push_back(g);
    if (taking.size() > kMostOpen) taking.erase(taking.begin());
  }

  bool join_siblings(GroupId other, GroupId g) {
    if (reads(g, other)) return false;
    const MergeAnswer answer = trial_.check_siblings(other, g);
    if (!answer.yes() || is_slower_as_one(other, g) || !join(other, g, answer)) return false;
    trial_.note_siblings(other, g, g);
    return true;
  }

  // Whether a and b read a common tensor and would be slower as one kernel. Groups with a common operand lower to one
  // kernel, not to two parts of a launch.
  bool is_slower_as_one(GroupId a, GroupId b) {
    constexpr std::size_t kMostNodes = 64;  // larger groups hold unrelated parts and are not checked
    if (groups_.nodes(a).size() + groups_.nodes(b).size() > kMostNodes || !read_in_common(a, b)) return false;
    const FusionRule rule = trial_.ask(std::array{a, b}).rule;
    return rule == FusionRule::kPredictedSlower || rule == FusionRule::kMoreBytes;
  }

  bool read_in_common(GroupId a, GroupId b) const {
    return std::ranges::any_of(groups_.nodes(a), [&](NodeId n) {
      return std::ranges::any_of(groups_.graph().nodes[n].inputs, [&](ValueId v) {
        if (v == kNone || groups_.graph().value(v).kind == Value::Kind::kNumber) return false;
        const auto users = groups_.uses().of(v);
        constexpr std::size_t kMostUsers = 64;
        return users.size() <= kMostUsers &&
               std::ranges::any_of(users, [&](NodeId user) { return groups_.group_of(user) == b; });
      });
    });
  }

  // Whether a group may be delayed until another is launched. Delaying keeps its results alive longer, so they must be
  // small, or be model outputs of a group that reads only model inputs.
  bool may_wait(GroupId g) {
    if (trial_.bytes(g) <= kLaunchBytes) return true;
    const std::vector<ValueId> outputs = groups_.outputs_of(groups_.nodes(g));
    std::int64_t kept = 0;
    for (const ValueId v : outputs)
      if (!groups_.is_output(v)) kept += bytes_.of(v);
    return kept == 0 ? groups_.producers(g).empty() : kept <= kLaunchBytes;
  }

  bool reads(GroupId g, GroupId other) const {
    const std::vector<GroupId> producers = groups_.producers(g);
    return std::ranges::find(producers, other) != producers.end();
  }

  // Merges producers into the merged group g. No single part could take them in while the other parts read them too.
  void take_producers(GroupId g) {
    for (bool again = true; again;) {
      count_step();
      again = false;
      const std::vector<GroupId> producers = groups_.producers(g);
      const std::vector<GroupId> apart = separate_reductions(groups_, kinds_, producers);
      for (const GroupId producer : producers) {
        if (std::ranges::find(apart, producer) != apart.end()) continue;
        if (!trial_.open(producer) || trial_.bytes(producer) == 0) continue;
        const MergeAnswer answer = trial_.ask(std::array{producer, g});
        again = answer.yes() && join(producer, g, answer);
        if (again) break;
      }
    }
  }

  // Merges `earlier` into g, the later of the two in execution order.
  bool join(GroupId earlier, GroupId g, const MergeAnswer& answer) {
    const NodeId last = groups_.nodes(earlier).back(), meeting = groups_.nodes(g).back();
    if (!groups_.contract(std::array{earlier, g})) return false;
    plan_.decisions[last] = {.meeting = meeting,
                             .rule = FusionRule::kJoined,
                             .phase = kSiblingPhase,
                             .joined_us = answer.joined_us,
                             .apart_us = answer.apart_us};
    joined_.push_back(g);
    has_siblings_[g] |= has_siblings_[earlier];
    changed_ = true;
    return true;
  }

  FusionPlan& plan_;
  std::span<const OpPattern> kinds_;
  GroupGraph groups_;
  MergeTrial trial_;
  ValueBytes bytes_;
  bool changed_ = false;
  LargeVector<NodeId> asked_;               // by value: the last node whose fellow readers were examined
  std::vector<std::uint8_t> has_siblings_;  // by group: 1 if an examined group reads a value that it reads
  std::vector<NodeId> nodes_;               // nodes of the current group
  std::vector<GroupId> joined_;             // groups that took in others
};

}  // namespace

void merge_siblings(const Graph& graph, std::span<const OpPattern> kinds, FusionPlan& plan, TrialMemory& memory) {
  SiblingMerger(graph, kinds, plan, memory).run();
}

}  // namespace fusec
