#include "ir/fusion_plan.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "ir/digraph.h"
#include "ir/spelling.h"
#include "ir/tuple_field.h"

namespace fusec {
namespace {

constexpr std::size_t kLongestName = 80;        // bytes of a description; a number may follow
constexpr std::size_t kLongestGivenName = 128;  // bytes of a group's name in a plan file

// Calls f(from, to) for each operand that the group `to` reads from the group `from`.
template <typename F>
void for_each_read(const Graph& graph, const FusionPlan& plan, F f) {
  for (GroupId g = 0; g < plan.groups.size(); ++g) {
    const auto& members = plan.groups[g].nodes;
    for (const NodeId n : members) {
      for (const ValueId v : graph.nodes[n].inputs) {
        const NodeId producer = v == kNone ? kNone : graph.value(v).producer;
        if (producer == kNone || plan.group_of[producer] == g) continue;
        // A group that recomputes the node reads its own copy.
        if (!plan.recomputed.empty() && std::ranges::binary_search(members, producer)) continue;
        f(plan.group_of[producer], g);
      }
    }
  }
}

// Whether every group reads only from groups at earlier places.
bool is_execution_order(const Graph& graph, const FusionPlan& plan, const std::vector<std::uint32_t>& place) {
  bool good = true;
  for_each_read(graph, plan, [&](GroupId from, GroupId to) { good = good && place[from] < place[to]; });
  return good;
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
  std::vector<std::uint32_t> place = order;
  if (is_execution_order(graph, plan, place)) return true;  // true for a replayed plan
  std::ranges::stable_sort(order, {}, [&](GroupId g) { return plan.groups[g].nodes.back(); });
  for (std::uint32_t i = 0; i < count; ++i) place[order[i]] = i;
  // This is an execution order if other groups read only the last nodes of groups; otherwise search for one.
  if (!is_execution_order(graph, plan, place)) {
    const auto each_edge = [&](auto edge) {
      for_each_read(graph, plan, [&](GroupId from, GroupId to) { edge(place[from], place[to]); });
    };
    std::vector<GroupId> found = topological_order(digraph_of(count, each_edge));
    if (found.size() < count) return false;
    for (GroupId& g : found) g = order[g];
    order = std::move(found);
  }
  if (!std::ranges::is_sorted(order)) {
    LargeVector<FusionGroup> sorted;
    sorted.reserve(count);
    for (const GroupId g : order) sorted.push_back(std::move(plan.groups[g]));
    plan.groups = std::move(sorted);
    index_groups(graph, plan);
  }
  return true;
}

// Of several groups that a group needs, the search tries the last first.
std::vector<GroupId> find_group_cycle(const Graph& graph, const FusionPlan& plan) {
  const Digraph readers = digraph_of(plan.groups.size(), [&](auto edge) { for_each_read(graph, plan, edge); });
  return find_cycle(digraph_of(plan.groups.size(), [&](auto edge) {
    for (GroupId g = readers.size(); g-- > 0;)
      for (const GroupId reader : readers.successors(g)) edge(reader, g);
  }));
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
