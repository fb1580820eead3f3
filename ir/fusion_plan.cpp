#include "ir/fusion_plan.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <unordered_map>

#include "ir/spelling.h"
#include "ir/tuple_field.h"

namespace fusec {
namespace {

constexpr std::size_t kLongestName = 80;        // bytes of a description; a number may follow
constexpr std::size_t kLongestGivenName = 128;  // bytes of a group's name in a plan file

// Calls f(producing node, value) for each operand of a node that is a result.
template <typename F>
void for_each_result_operand(const Graph& graph, const Node& node, F f) {
  for (const ValueId v : node.inputs) {
    if (v == kNone) continue;
    const Value& value = graph.value(v);
    if (value.kind == Value::Kind::kResult) f(value.producer, v);
  }
}

// Whether every group reads only from groups before it. `order` holds the group at each place.
bool is_execution_order(const Graph& graph, const FusionPlan& plan, const std::vector<GroupId>& order) {
  std::vector<std::uint32_t> place(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  for (GroupId g = 0; g < plan.groups.size(); ++g) {
    for (const NodeId n : plan.groups[g].nodes) {
      bool good = true;
      for_each_result_operand(graph, graph.nodes[n], [&](NodeId producer, ValueId) {
        const GroupId from = plan.group_of[producer];
        const auto& members = plan.groups[g].nodes;
        // A group that recomputes the node reads its own copy.
        if (from != g && place[from] > place[g] && !std::ranges::binary_search(members, producer)) good = false;
      });
      if (!good) return false;
    }
  }
  return true;
}

// For each group the groups that read from it, once per operand.
std::vector<std::vector<GroupId>> readers_of_groups(const Graph& graph, const FusionPlan& plan) {
  std::vector<std::vector<GroupId>> readers(plan.groups.size());
  for (GroupId g = 0; g < plan.groups.size(); ++g) {
    const auto& members = plan.groups[g].nodes;
    for (const NodeId n : members) {
      for_each_result_operand(graph, graph.nodes[n], [&](NodeId producer, ValueId) {
        const GroupId from = plan.group_of[producer];
        if (from != g && !std::ranges::binary_search(members, producer)) readers[from].push_back(g);
      });
    }
  }
  return readers;
}

// Kahn's algorithm over the groups. Among the ready groups, the one with the earliest last node comes first. Groups on
// a cycle, or after one, are left out.
std::vector<GroupId> topological_order(const FusionPlan& plan, const std::vector<std::vector<GroupId>>& readers) {
  std::vector<std::uint32_t> waits(plan.groups.size(), 0);
  for (const auto& list : readers) {
    for (const GroupId g : list) ++waits[g];
  }
  using Entry = std::pair<NodeId, GroupId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto push = [&](GroupId g) { ready.emplace(plan.groups[g].nodes.back(), g); };
  for (GroupId g = 0; g < plan.groups.size(); ++g) {
    if (waits[g] == 0) push(g);
  }
  std::vector<GroupId> order;
  while (!ready.empty()) {
    const GroupId g = ready.top().second;
    ready.pop();
    order.push_back(g);
    for (const GroupId reader : readers[g]) {
      if (--waits[reader] == 0) push(reader);
    }
  }
  return order;
}

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

void append_cleaned(std::string_view text, std::string& to) {
  for (const char c : text) to += is_name_char(c) ? c : '_';
}

void write_descriptive_name(const Graph& graph, const FusionGroup& group, std::string& to) {
  to.clear();
  if (group.nodes.size() > 1) to = "fused";
  for (const NodeId n : group.nodes) {
    if (to.size() >= kLongestName) break;
    if (!to.empty()) to += '_';
    append_cleaned(graph.nodes[n].op->name, to);
  }
  if (to.size() > kLongestName) to.resize(kLongestName);
  if (to.empty() || is_digit(to[0])) to.insert(to.begin(), '_');
}

// Whether a name ends like a numbered one: "conv_2" could be the second "conv".
bool ends_in_number(std::string_view text) {
  const std::size_t last = text.find_last_not_of("0123456789");
  return last != std::string_view::npos && last + 1 < text.size() && text[last] == '_';
}

}  // namespace

std::string_view name(Strategy strategy) {
  switch (strategy) {
    case Strategy::kUnfused:
      return "none";
    case Strategy::kTvm:
      return "tvm";
    case Strategy::kFull:
      return "full";
  }
  return "";
}

std::optional<Strategy> parse_strategy(std::string_view text) {
  for (const Strategy s : {Strategy::kUnfused, Strategy::kTvm, Strategy::kFull}) {
    if (name(s) == text) return s;
  }
  return std::nullopt;
}

// A tuple has no memory, so a group that reads a field has the field's tensor as its input.
std::vector<GroupInterface> group_interfaces(const Graph& graph, const FusionPlan& plan) {
  const std::size_t count = plan.groups.size();
  std::vector<GroupInterface> interfaces(count);
  // The last visited group that reads a value, and the last one that holds a node.
  std::vector<GroupId> read_by(graph.value_count(), kNone);
  std::vector<GroupId> held_by(graph.nodes.size(), kNone);
  std::vector<std::uint8_t> is_output(graph.value_count(), 0);
  for (const ValueId v : graph.outputs) is_output[v] = 1;
  std::vector<std::uint8_t> needed = is_output;
  for (GroupId g = 0; g < count; ++g) {
    for (const NodeId n : plan.groups[g].nodes) held_by[n] = g;
    for (const NodeId n : plan.groups[g].nodes) {
      const Node& node = graph.nodes[n];
      if (node.op->special == Special::kTuple && !is_output[node.first_output]) continue;
      for (const ValueId operand : node.inputs) {
        if (operand == kNone) continue;
        const ValueId v = resolve_tuple(graph, node.op->special == Special::kTuple ? node.first_output : operand);
        if (read_by[v] == g) continue;
        const Value& value = graph.value(v);
        if (value.kind == Value::Kind::kNumber || value.kind == Value::Kind::kDim) continue;
        if (value.kind == Value::Kind::kResult && held_by[value.producer] == g) continue;
        read_by[v] = g;
        needed[v] = 1;
        interfaces[g].inputs.push_back(v);
      }
    }
  }
  for (GroupId g = 0; g < count; ++g) {
    for (const NodeId n : plan.groups[g].nodes) {
      if (plan.group_of[n] != g) continue;  // other groups read the value from the first group that computes it
      const Node& node = graph.nodes[n];
      for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v) {
        if (needed[v]) interfaces[g].outputs.push_back(v);
      }
    }
  }
  return interfaces;
}

void index_groups(const Graph& graph, FusionPlan& plan) {
  plan.group_of.assign(graph.nodes.size(), kNone);
  plan.recomputed.clear();
  for (GroupId g = 0; g < plan.groups.size(); ++g) {
    for (const NodeId n : plan.groups[g].nodes) {
      if (plan.group_of[n] == kNone) {
        plan.group_of[n] = g;
      } else {
        plan.recomputed.push_back({g, n});
      }
    }
  }
}

bool order_groups(const Graph& graph, FusionPlan& plan) {
  const std::size_t count = plan.groups.size();
  index_groups(graph, plan);
  std::vector<GroupId> order(count);
  std::iota(order.begin(), order.end(), 0);
  if (is_execution_order(graph, plan, order)) return true;  // true for a replayed plan
  std::ranges::stable_sort(order, {}, [&](GroupId g) { return plan.groups[g].nodes.back(); });
  // This is an execution order if other groups read only the last nodes of groups; otherwise search for one.
  if (!is_execution_order(graph, plan, order)) order = topological_order(plan, readers_of_groups(graph, plan));
  if (order.size() < count) return false;
  if (!std::ranges::is_sorted(order)) {
    LargeVector<FusionGroup> sorted;
    sorted.reserve(count);
    for (const GroupId g : order) sorted.push_back(std::move(plan.groups[g]));
    plan.groups = std::move(sorted);
    index_groups(graph, plan);
  }
  return true;
}

// Every group that the topological sort leaves out reads from another such group, so following these finds a cycle.
std::vector<GroupId> find_group_cycle(const Graph& graph, const FusionPlan& plan) {
  const auto readers = readers_of_groups(graph, plan);
  std::vector<std::uint8_t> left_over(plan.groups.size(), 1);
  for (const GroupId g : topological_order(plan, readers)) left_over[g] = 0;
  std::vector<GroupId> needs(plan.groups.size(), kNone);
  GroupId at = kNone;
  for (GroupId g = 0; g < plan.groups.size(); ++g) {
    if (!left_over[g]) continue;
    for (const GroupId reader : readers[g]) needs[reader] = g;
  }
  for (GroupId g = 0; g < plan.groups.size() && at == kNone; ++g) {
    if (left_over[g]) at = g;
  }
  std::vector<GroupId> way;
  std::vector<std::uint8_t> seen(plan.groups.size(), 0);
  for (; at != kNone && !seen[at]; at = needs[at]) {
    seen[at] = 1;
    way.push_back(at);
  }
  way.erase(way.begin(), std::ranges::find(way, at));
  return way;
}

void classify_group(std::span<const OpPattern> kinds, FusionGroup& group) {
  group.pattern = kinds[group.nodes.back()];
  group.anchor = kNone;
  for (const NodeId n : group.nodes) {
    if (kinds[n] != OpPattern::kOutEwiseFusable) continue;
    group.anchor = n;
    group.pattern = OpPattern::kOutEwiseFusable;
    return;
  }
}

// A name is a description, or a description and a number. A description that ends in a number always gets another one.
// So different descriptions never give the same name, and only descriptions are stored.
void name_groups(const Graph& graph, FusionPlan& plan) {
  std::unordered_map<const OpDef*, std::uint32_t*> of_single;  // groups of one node need no text lookup
  std::unordered_map<std::string, std::uint32_t> uses;
  std::string text;
  constexpr std::size_t kAhead = 12;
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    FusionGroup& group = plan.groups[g];
    // Each group's first node is a cache miss in a large graph, so prefetch.
    if (g + kAhead < plan.groups.size()) __builtin_prefetch(&graph.nodes[plan.groups[g + kAhead].nodes[0]].op);
    std::uint32_t* count = nullptr;
    if (group.nodes.size() == 1) count = of_single[graph.nodes[group.nodes[0]].op];
    write_descriptive_name(graph, group, text);
    if (count == nullptr) {
      count = &uses.try_emplace(text, ends_in_number(text) ? 1 : 0).first->second;
      if (group.nodes.size() == 1) of_single[graph.nodes[group.nodes[0]].op] = count;
    }
    if (*count != 0) text.append("_").append(std::to_string(*count));
    ++*count;
    group.name = text;
  }
}

std::string cleaned_name(std::string_view text) {
  std::string clean;
  append_cleaned(text, clean);
  if (clean.empty() || is_digit(clean[0])) clean.insert(clean.begin(), '_');
  if (clean.size() > kLongestName) clean.resize(kLongestName);
  return clean;
}

bool is_group_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestGivenName && !is_digit(text[0]) &&
         std::ranges::all_of(text, is_name_char);
}

std::string_view name(GroupCode code) {
  switch (code) {
    case GroupCode::kFusec:
      return "fusec";
    case GroupCode::kExternal:
      return "external";
    case GroupCode::kCublasLt:
      return "cublaslt";
    case GroupCode::kNccl:
      return "nccl";
  }
  return "";
}

}  // namespace fusec
