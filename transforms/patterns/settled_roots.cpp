#include "transforms/patterns/settled_roots.h"

#include <algorithm>

namespace fusec {
namespace {

constexpr NodeId kFarthest = 512;         // greatest reach of a settled root
constexpr std::size_t kMostFarLists = 8;  // distinct lists of far nodes; models have few nodes that all layers read

}  // namespace

void SettledRoots::begin_round(std::size_t nodes) {
  nodes_ = nodes;
  touched_.assign(nodes / 64 + 1, 0);
}

// Skips nodes that were added in this round, since no settled root depends on them.
void SettledRoots::touch_operands(const Graph& graph, const Node& node) {
  for (const ValueId v : node.inputs) {
    const NodeId producer = v == kNone ? kNone : graph.value(v).producer;
    if (producer < nodes_) touch(producer);
  }
}

bool SettledRoots::is_untouched(const Settled& settled) const {
  const NodeId first = settled.root - settled.reach;
  for (NodeId word = first / 64; word <= settled.root / 64; ++word) {
    std::uint64_t bits = touched_[word];
    if (bits == 0) continue;
    if (word == first / 64) bits &= ~std::uint64_t{0} << (first % 64);
    if (word == settled.root / 64) bits &= ~std::uint64_t{0} >> (63 - settled.root % 64);
    if (bits != 0) return false;
  }
  return settled.far == kNone ||
         std::ranges::none_of(far_[settled.far], [&](NodeId n) { return (touched_[n / 64] >> (n % 64) & 1) != 0; });
}

bool SettledRoots::is_settled(std::size_t pattern, NodeId root) {
  std::vector<Settled>& settled = settled_[pattern];
  while (!settled.empty() && settled.back().root > root) settled.pop_back();
  if (settled.empty() || settled.back().root != root || !is_untouched(settled.back())) return false;
  next_[pattern].push_back(settled.back());
  return true;
}

void SettledRoots::note(std::size_t pattern, NodeId root, NodeId reach, std::span<const NodeId> far) {
  if (reach > kFarthest) return;
  Settled settled{.root = root, .reach = reach, .far = kNone};
  if (!far.empty()) {
    const auto known = std::ranges::find_if(far_, [&](const auto& list) { return std::ranges::equal(list, far); });
    if (known == far_.end() && far_.size() == kMostFarLists) return;
    settled.far = static_cast<std::uint32_t>(known - far_.begin());
    if (known == far_.end()) far_.emplace_back(far.begin(), far.end());
  }
  next_[pattern].push_back(settled);
}

// Touches nodes that go, and the operands of nodes that go or were added, whose readers change. Then renumbers the
// settled roots that remain untouched.
void SettledRoots::end_round(const Graph& graph, std::span<const NodeId> order) {
  std::vector<NodeId> now(graph.nodes.size(), kNone);
  for (NodeId n = 0; n < order.size(); ++n) now[order[n]] = n;
  for (NodeId n = 0; n < now.size(); ++n) {
    if (now[n] != kNone && n < nodes_) continue;
    if (n < nodes_) touch(n);
    touch_operands(graph, graph.nodes[n]);
  }
  for (std::size_t p = 0; p < settled_.size(); ++p) {
    settled_[p].clear();
    for (const Settled& before : next_[p]) {
      if (!is_untouched(before)) continue;
      NodeId first = now[before.root];
      for (NodeId n = before.root - before.reach; n < before.root; ++n) first = std::min(first, now[n]);
      const NodeId reach = now[before.root] - first;
      if (reach <= kFarthest) settled_[p].push_back({.root = now[before.root], .reach = reach, .far = before.far});
    }
    next_[p].clear();
    std::ranges::reverse(settled_[p]);
    if (!std::ranges::is_sorted(settled_[p], {}, &Settled::root)) std::ranges::sort(settled_[p], {}, &Settled::root);
  }
  for (std::vector<NodeId>& list : far_) {
    for (NodeId& n : list) n = now[n];
    // A root whose far list lost a node is no longer settled, because that node was touched.
    std::erase(list, kNone);
  }
}

}  // namespace fusec
