#include "analysis/group_graph.h"

#include <algorithm>
#include <utility>

#include "ir/budget.h"
#include "ir/error.h"

namespace fusec {
namespace {

// A merge may have at most this many other groups in between.
constexpr std::size_t kFarthest = 1024;
constexpr std::uint32_t kFarthestPlaces =
    4096;  // limit on the difference of place numbers, which count merged groups too

}  // namespace

GroupGraph::GroupGraph(const Graph& graph, const FusionPlan& plan, std::shared_ptr<const Uses> uses)
    : graph_(graph),
      uses_(uses ? std::move(uses) : std::make_shared<const Uses>(uses_of(graph))),
      is_output_(graph.value_count(), 0),
      alive_(plan.groups.size(), 1),
      group_of_(plan.group_of.begin(), plan.group_of.end()),
      recomputed_by_(graph.nodes.size(), 0),
      marked_(plan.groups.size(), 0),
      seen_(plan.groups.size(), 0) {
  for (const ValueId v : graph.outputs) is_output_[v] = 1;
  for (const Recomputed& r : plan.recomputed) ++recomputed_by_[r.node];
  const auto count = static_cast<GroupId>(plan.groups.size());
  members_.reserve(count);
  next_.resize(count);
  previous_.resize(count);
  place_.resize(count);
  for (GroupId g = 0; g < count; ++g) {
    count_step();
    members_.push_back(plan.groups[g].nodes);
    claimed_by_.push_back(plan.groups[g].claimed_by);
    next_[g] = g + 1 < count ? g + 1 : kNone;
    previous_[g] = g > 0 ? g - 1 : kNone;
    place_[g] = g;
  }
  first_ = count > 0 ? 0 : kNone;
}

std::vector<GroupId> GroupGraph::order() const {
  std::vector<GroupId> order;
  order.reserve(size());
  for (GroupId g = first_; g != kNone; g = next_[g]) order.push_back(g);
  return order;
}

std::vector<GroupId> GroupGraph::producers(GroupId g) const {
  std::vector<GroupId> found;
  find_producers(g, found);
  return found;
}

void GroupGraph::find_producers(GroupId g, std::vector<GroupId>& found) const {
  found.clear();
  ++seen_now_;
  for_each_producer(g, [&](GroupId producer) {
    if (seen_[producer] == seen_now_) return;
    seen_[producer] = seen_now_;
    found.push_back(producer);
  });
  std::ranges::sort(found, [&](GroupId a, GroupId b) { return is_before(b, a); });
}

std::vector<GroupId> GroupGraph::consumers(GroupId g) const {
  std::vector<GroupId> found;
  ++seen_now_;
  for (const NodeId n : members_[g]) {
    count_step();
    if (group_of_[n] != g) continue;
    const Node& node = graph_.nodes[n];
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v) {
      for (const NodeId user : uses_->of(v)) {
        const GroupId consumer = group_of_[user];
        if (consumer == g || seen_[consumer] == seen_now_) continue;
        seen_[consumer] = seen_now_;
        found.push_back(consumer);
      }
    }
  }
  std::ranges::sort(found, [&](GroupId a, GroupId b) { return is_before(a, b); });
  return found;
}

std::vector<ValueId> GroupGraph::outputs_of(std::span<const NodeId> nodes) const {
  return needed_of(graph_, *uses_, is_output_, nodes);
}

std::vector<NodeId> GroupGraph::nodes_of(std::span<const GroupId> groups) const {
  std::vector<NodeId> nodes;
  for (const GroupId g : groups) nodes.insert(nodes.end(), members_[g].begin(), members_[g].end());
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

bool GroupGraph::reads_any_marked(GroupId g) const {
  return any_producer(g, [&](GroupId producer) { return marked_[producer] == now_; });
}

// Marks the merged groups and every group between them that depends on one of them. Returns false if one of those leads
// back to a merged group (a cycle), or if too many groups lie between.
bool GroupGraph::mark_between(std::span<const GroupId> sorted) {
  ++now_;
  between_.clear();
  marked_[sorted.front()] = now_;
  std::size_t next_member = 1;
  bool some_between = false;
  for (GroupId at = next_[sorted.front()]; next_member < sorted.size(); at = next_[at]) {
    count_step();
    if (at == sorted[next_member]) {
      // A merged group may read marked groups only if they are merged too; any other marked producer closes a cycle.
      bool through_another = false;
      if (some_between)
        for_each_producer(at, [&](GroupId producer) {
          through_another = through_another || (marked_[producer] == now_ && !std::ranges::count(sorted, producer));
        });
      if (through_another) return false;
      marked_[at] = now_;
      ++next_member;
      continue;
    }
    if (between_.size() == kFarthest) return false;
    between_.push_back(at);
    if (reads_any_marked(at)) {
      marked_[at] = now_;
      some_between = true;
    }
  }
  return true;
}

bool GroupGraph::contract(std::span<const GroupId> groups) {
  std::vector<GroupId> sorted(groups.begin(), groups.end());
  std::ranges::sort(sorted, [&](GroupId a, GroupId b) { return is_before(a, b); });
  if (sorted.size() < 2 || place_[sorted.back()] - place_[sorted.front()] > kFarthestPlaces) return false;
  if (!mark_between(sorted)) return false;
  const GroupId kept = sorted.back();
  const GroupId before = previous_[sorted.front()], after = next_[kept];
  std::vector<std::uint32_t> places;
  for (const GroupId g : sorted) places.push_back(place_[g]);
  for (const GroupId g : between_) places.push_back(place_[g]);
  std::ranges::sort(places);
  // Unmarked groups in between go before the merged group, marked ones (which depend on it) after.
  std::vector<GroupId> order;
  for (const GroupId g : between_)
    if (marked_[g] != now_) order.push_back(g);
  order.push_back(kept);
  for (const GroupId g : between_)
    if (marked_[g] == now_) order.push_back(g);
  GroupId last = before;
  for (std::size_t i = 0; i < order.size(); ++i) {
    count_step();
    place_[order[i]] = places[i];
    previous_[order[i]] = last;
    if (last != kNone) next_[last] = order[i];
    last = order[i];
  }
  if (before == kNone) first_ = order.front();
  next_[last] = after;
  if (after != kNone) previous_[after] = last;

  const std::vector<NodeId> nodes = nodes_of(sorted);
  for (const NodeId n : nodes) {
    count_step();
    std::size_t holders = 0;
    bool held = false;
    for (const GroupId g : sorted) {
      held = held || group_of_[n] == g;
      if (recomputed_by_[n] != 0) holders += std::ranges::binary_search(members_[g], n) ? 1 : 0;
    }
    if (recomputed_by_[n] != 0) recomputed_by_[n] -= static_cast<std::uint32_t>(holders - 1);
    if (held) group_of_[n] = kept;
  }
  for (const GroupId g : sorted) {
    count_step();
    if (g == kept) continue;
    if (claimed_by_[kept] == kNone) claimed_by_[kept] = claimed_by_[g];
    alive_[g] = 0;
    members_[g] = {};
  }
  members_[kept] = nodes;
  return true;
}

void GroupGraph::add_recomputed(GroupId consumer, std::span<const NodeId> nodes) {
  std::vector<NodeId> all = members_[consumer];
  all.insert(all.end(), nodes.begin(), nodes.end());
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  members_[consumer] = all;
  for (const NodeId n : nodes) ++recomputed_by_[n];
}

void GroupGraph::move_into(std::span<const GroupId> readers, std::span<const NodeId> nodes, GroupId from,
                           std::span<const NodeId> leaving) {
  for (const GroupId reader : readers) add_recomputed(reader, nodes);
  std::vector<NodeId> rest;
  std::ranges::set_difference(members_[from], leaving, std::back_inserter(rest));
  members_[from] = rest;
  for (const NodeId n : leaving) {
    count_step();
    --recomputed_by_[n];
    group_of_[n] = readers.front();
  }
}

void GroupGraph::write_to(FusionPlan& plan, std::span<const OpPattern> kinds) const {
  LargeVector<FusionGroup> groups;
  groups.reserve(size());
  for (const GroupId g : order()) {
    count_step();
    FusionGroup& group = groups.emplace_back(std::move(plan.groups[g]));
    if (group.nodes == members_[g]) continue;
    group.nodes = members_[g];
    group.name.clear();
    group.claimed_by = claimed_by_[g];
    classify_group(kinds, group);
  }
  plan.groups = std::move(groups);
  index_groups(graph_, plan);
}

}  // namespace fusec
