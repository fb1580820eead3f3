#include "transforms/apply_layouts.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <unordered_set>

#include "ir/infer.h"

namespace fusec {
namespace {

class LayingOut {
 public:
  LayingOut(const Graph& graph, const FusionPlan& plan, const std::vector<std::uint8_t>& constant_readers)
      : groups_(graph, plan), constant_readers_(constant_readers), laid_{graph, plan} {
    for (const FusionGroup& group : plan.groups) group_names_.insert(group.name);
  }

  PlanWithLayouts run(std::span<const ValueLayout> values) {
    old_nodes_ = laid_.graph.nodes.size();
    const Uses uses = uses_of(laid_.graph);
    behind_.resize(old_nodes_);
    // Order values by their first readers, because a constant's position in the file carries no meaning.
    std::vector<ValueLayout> in_order(values.begin(), values.end());
    std::ranges::stable_sort(in_order, {}, [&](const ValueLayout& l) {
      const std::span<const NodeId> readers = uses.of(l.value);
      return readers.empty() ? kNone : std::ranges::min(readers);
    });
    for (const ValueLayout& layout : in_order) permute_twice(layout, uses.of(layout.value));
    rearrange();
    return std::move(laid_);
  }

 private:
  Graph& graph() { return laid_.graph; }

  std::string fresh_name(const std::string& wish) {
    std::string name = wish;
    for (int i = 2; graph().find_value(name) != kNone || graph().find_node(name) != kNone; ++i)
      name = wish + "_" + std::to_string(i);
    return name;
  }

  NodeId add_permute(ValueId v, const std::string& wish, std::vector<std::int64_t> dims) {
    Attributes attributes;
    attributes.set("dims", std::move(dims));
    Node node;
    node.name = fresh_name(wish);
    node.op = graph().op("permute");
    node.inputs = {v};
    const std::vector<ValueType> types =
        infer_types(graph(), *node.op, std::span(&v, 1), attributes, {}, node.name, nullptr);
    node.attributes = graph().intern(std::move(attributes));
    const std::string name = node.name;
    return graph().add_node(std::move(node), types, {name});
  }

  void permute_twice(const ValueLayout& layout, std::span<const NodeId> readers) {
    const ValueId v = layout.value;
    const std::string name = graph().value(v).name;
    const std::size_t rank = graph().tensor(v).rank();
    const NodeId producer = graph().value(v).producer;
    const NodeId last = add_permute(v, name + "_channels_last", channels_last(rank, layout.channels));
    const NodeId first =
        add_permute(graph().nodes[last].first_output, name + "_channels_first", channels_first(rank, layout.channels));
    const ValueId seen = graph().nodes[first].first_output;
    GroupId home = kNone;
    if (producer == kNone) {
      home = static_cast<GroupId>(laid_.plan.groups.size());
      laid_.plan.groups.push_back(
          {.name = fresh_group_name(name), .nodes = {}, .pattern = OpPattern::kInjective, .prepared = true});
      at_front_.insert(at_front_.end(), {last, first});
    } else {
      home = groups_.of(producer).front();
      behind_[producer].insert(behind_[producer].end(), {last, first});
    }
    laid_.plan.groups[home].nodes.push_back(last);
    std::vector<GroupId> takers;
    for (const NodeId n : readers) {
      const std::vector<GroupId> of = groups_.of(n);
      if (producer != kNone ? std::ranges::find(of, home) != of.end() : constant_readers_[n] == 0) continue;
      for (ValueId& input : graph().nodes[n].inputs)
        if (input == v) input = seen;
      takers.insert(takers.end(), of.begin(), of.end());
    }
    std::ranges::sort(takers);
    takers.erase(std::unique(takers.begin(), takers.end()), takers.end());
    for (const GroupId g : takers) laid_.plan.groups[g].nodes.push_back(first);
  }

  std::string fresh_group_name(const std::string& value) {
    std::string clean;
    for (const char c : value) clean += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    std::string name = "channels_last_" + clean;
    for (int i = 2; !group_names_.insert(name).second; ++i) name = "channels_last_" + clean + "_" + std::to_string(i);
    return name;
  }

  // Moves each permute after the node whose result it permutes, and renumbers nodes and values in the plan.
  void rearrange() {
    std::vector<NodeId> order = at_front_;
    for (NodeId n = 0; n < old_nodes_; ++n) {
      order.push_back(n);
      order.insert(order.end(), behind_[n].begin(), behind_[n].end());
    }
    const std::vector<ValueId> value_now = graph().rearrange(order, std::vector<bool>(graph().constants.size(), true));
    std::vector<NodeId> now(order.size());
    for (NodeId i = 0; i < order.size(); ++i) now[order[i]] = i;
    const auto renumber = [&](NodeId& n) {
      if (n != kNone) n = now[n];
    };
    FusionPlan& plan = laid_.plan;
    for (FusionGroup& group : plan.groups) {
      for (NodeId& n : group.nodes) renumber(n);
      std::sort(group.nodes.begin(), group.nodes.end());
      renumber(group.anchor);
    }
    for (PatternClaim& claim : plan.claims) {
      for (NodeId& n : claim.nodes) renumber(n);
      for (auto& [part, n] : claim.parts) renumber(n);
      for (ValueId& v : claim.bound_constants) v = value_now[v];
    }
    // Decisions are reported from the original plan.
    plan.decisions.clear();
    plan.refused.clear();
    index_groups(graph(), plan);
  }

  const GroupsOfNodes groups_;
  const std::vector<std::uint8_t>& constant_readers_;
  PlanWithLayouts laid_;
  std::unordered_set<std::string> group_names_;
  std::size_t old_nodes_ = 0;
  std::vector<NodeId> at_front_;
  std::vector<std::vector<NodeId>> behind_;  // by node: the added permutes of its results
};

}  // namespace

std::vector<std::int64_t> channels_last(std::size_t rank, std::size_t channels) {
  std::vector<std::int64_t> dims;
  for (std::size_t d = 0; d < rank; ++d)
    if (d != channels) dims.push_back(static_cast<std::int64_t>(d));
  dims.push_back(static_cast<std::int64_t>(channels));
  return dims;
}

std::vector<std::int64_t> channels_first(std::size_t rank, std::size_t channels) {
  std::vector<std::int64_t> dims(rank);
  const std::vector<std::int64_t> last = channels_last(rank, channels);
  for (std::size_t d = 0; d < rank; ++d) dims[static_cast<std::size_t>(last[d])] = static_cast<std::int64_t>(d);
  return dims;
}

GroupsOfNodes::GroupsOfNodes(const Graph& graph, const FusionPlan& plan)
    : plan_(plan), begin_(graph.nodes.size() + 1, 0), recomputed_(plan.recomputed) {
  std::ranges::stable_sort(recomputed_, {}, &Recomputed::node);
  for (const Recomputed& r : recomputed_) ++begin_[r.node + 1];
  for (std::size_t n = 0; n + 1 < begin_.size(); ++n) begin_[n + 1] += begin_[n];
}

std::vector<GroupId> GroupsOfNodes::of(NodeId n) const {
  std::vector<GroupId> groups{plan_.group_of[n]};
  for (std::uint32_t i = begin_[n]; i < begin_[n + 1]; ++i) groups.push_back(recomputed_[i].group);
  return groups;
}

PlanWithLayouts apply_layouts(const Graph& graph, const FusionPlan& plan, std::span<const ValueLayout> values,
                              const std::vector<std::uint8_t>& constant_readers) {
  return LayingOut(graph, plan, constant_readers).run(values);
}

}  // namespace fusec
