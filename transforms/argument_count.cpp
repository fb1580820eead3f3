#include "transforms/argument_count.h"

#include <algorithm>

namespace fusec {

ArgumentTable argument_table(const Graph& graph, const FusionGraph& fusion) {
  const Vertex n = fusion.forward.size();
  ArgumentTable table;
  table.item_of.assign(n, kNoVertex);
  table.has_items.assign(n, 0);
  for (Vertex v = 0; v < n; ++v) {
    table.first.push_back(static_cast<std::uint32_t>(table.reads.size()));
    if (fusion.is_item(v)) {
      table.item_of[v] = fusion.vertex_of[fusion.node_of[v]];
      continue;
    }
    const NodeId first = fusion.first_node(v), last = fusion.node_of[v];
    table.has_items[v] = first == last && has_items(graph.nodes[last]);
    for (NodeId m = first; m <= last; ++m) {
      for (const ValueId value : graph.nodes[m].inputs) {
        if (value == kNone) continue;
        const Value::Kind kind = graph.value(value).kind;
        if (kind == Value::Kind::kNumber || kind == Value::Kind::kDim) continue;
        table.reads.push_back(kind == Value::Kind::kResult ? fusion.vertex_of_value[value] : n + value);
      }
    }
  }
  table.first.push_back(static_cast<std::uint32_t>(table.reads.size()));
  return table;
}

ArgumentCount::ArgumentCount(const ForwardGraph& graph, const ArgumentTable& table, std::uint32_t limit)
    : graph_(graph), table_(table), limit_(limit), at_most_(graph.size()), next_member_(graph.size()) {
  std::uint32_t values = graph.size();
  for (const std::uint32_t value : table.reads) values = std::max(values, value + 1);
  member_stamp_.assign(graph.size(), 0);
  value_stamp_.assign(values, 0);
  for (Vertex v = 0; v < graph.size(); ++v) {
    next_member_[v] = v;
    at_most_[v] = count({&v, 1});
  }
}

std::uint32_t ArgumentCount::count(std::span<const Vertex> members) {
  ++now_;
  for (const Vertex v : members) member_stamp_[v] = now_;
  std::uint32_t arguments = 0;
  for (const Vertex v : members) {
    for (std::uint32_t i = table_.first[v]; i < table_.first[v + 1]; ++i) {
      const std::uint32_t value = table_.reads[i];
      if (value_stamp_[value] == now_) continue;
      value_stamp_[value] = now_;
      // An item vertex computes nothing: its value is defined by its node's vertex.
      const Vertex definer =
          value < graph_.size() && table_.item_of[value] != kNoVertex ? table_.item_of[value] : value;
      if (definer >= graph_.size() || member_stamp_[definer] != now_) ++arguments;
    }
    const auto is_outside = [&](Vertex c) { return member_stamp_[c] != now_; };
    const auto is_read_outside = [&](Vertex value) {
      return graph_.external[value] != 0 || std::ranges::any_of(graph_.consumers(value), is_outside);
    };
    if (table_.item_of[v] != kNoVertex) continue;
    if (!table_.has_items[v]) {
      arguments += is_read_outside(v);
    } else {
      for (const Vertex item : graph_.consumers(v)) arguments += is_read_outside(item);
    }
  }
  return arguments;
}

void ArgumentCount::gather(Vertex root) {
  Vertex v = root;
  do {
    members_.push_back(v);
    v = next_member_[v];
  } while (v != root);
}

bool ArgumentCount::fits(Vertex source, std::span<const Vertex> between, Vertex target, std::span<const Vertex> up) {
  const auto root_of = [&](Vertex v) {
    while (up[v] != v) v = up[v];
    return v;
  };
  std::vector<Vertex> roots{source, target};
  for (const Vertex v : between) roots.push_back(root_of(v));
  std::ranges::sort(roots);
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  // The sum of the groups' bounds is a bound of the merged group. Count exactly only if the sum exceeds the limit.
  std::uint64_t bound = 0;
  for (const Vertex root : roots) bound += at_most_[root];
  if (bound <= limit_) {
    at_most_[target] = static_cast<std::uint32_t>(bound);
    return true;
  }
  members_.clear();
  for (const Vertex root : roots) gather(root);
  const std::uint32_t exact = count(members_);
  if (exact > limit_) return false;
  at_most_[target] = exact;
  return true;
}

void ArgumentCount::merge(Vertex root, Vertex target) {
  std::swap(next_member_[root], next_member_[target]);
}

}  // namespace fusec
