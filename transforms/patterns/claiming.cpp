#include "transforms/patterns/claiming.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "analysis/annotate.h"
#include "ir/budget.h"
#include "ir/constant_data.h"
#include "ir/spelling.h"
#include "schedule/kernel_forms.h"
#include "transforms/patterns/conditions.h"

namespace fusec {
namespace {

constexpr std::int64_t kMostClaimNodesTried = 60'000;  // nodes that trial lowerings may lower
constexpr std::size_t kMostBefore = 64;                // nodes before a match that are searched for other products
constexpr std::size_t kFarthestSearch = 10000;         // nodes searched for a cycle; beyond, the match is refused

std::string text_of(const AttributeValue& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) return std::to_string(*i);
  if (const auto* d = std::get_if<double>(&value)) return fmt::format("{}", *d);
  if (const auto* s = std::get_if<Scalar>(&value)) return fmt::format("{}", s->as_double());
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const auto* t = std::get_if<std::string>(&value)) return *t;
  if (const auto* dtype = std::get_if<DType>(&value)) return std::string(name(*dtype));
  return "";
}

}  // namespace

bool claims_nodes(Becomes becomes) {
  return becomes != Becomes::kRewrite;
}

Claiming::Claiming(const Graph& graph, const ClaimLimits& limits, TrialMemory& memory)
    : graph_(graph),
      limits_(limits),
      searched_(graph),
      looks_(searched_),
      lowering_(graph, memory, kMostClaimNodesTried),
      claim_of_(graph.nodes.size(), kNone),
      open_end_(graph.nodes.size()) {
  std::iota(open_end_.begin(), open_end_.end(), NodeId{0});
  for (NodeId n = 0; n < graph.nodes.size(); ++n)
    if (graph.nodes[n].prepared) searched_.taken[n] = true;
}

void Claiming::run(const FusionPattern& pattern, const std::vector<NodeId>& roots) {
  MatchMemory memory(searched_, looks_, pattern);
  roots_left_ = roots.size();
  for (auto it = roots.rbegin(); it != roots.rend(); ++it, --roots_left_)
    if (!searched_.taken[*it]) try_at(*it, memory);
}

void Claiming::try_at(NodeId root, MatchMemory& memory) {
  if (RememberedMatch* remembered = memory.find(root)) {
    if (!remembered->matched() || remembered->accepted == false) return;
    PatternMatch match = memory.match(*remembered, root);
    const bool accepted = remembered->accepted ? why_not_from_afar(match).empty() : why_not(match).empty();
    if (accepted) add(std::move(match));
    return;
  }
  RememberedMatch* remembered = nullptr;
  std::optional<PatternMatch> match = memory.search(root, remembered);
  if (!match) return;
  const bool accepted = why_not(*match).empty();
  if (remembered && accepted) remembered->accepted = true;
  if (remembered && !accepted && why_not_from_afar(*match).empty() && !lowering_.is_spent())
    remembered->accepted = false;
  if (accepted) add(std::move(*match));
}

void Claiming::take_back(PatternClaim made) {
  const auto number = static_cast<std::uint32_t>(claims_.size());
  // Reserve for all roots that are left, so that a million claims are not moved repeatedly.
  if (claims_.size() == claims_.capacity()) claims_.reserve(2 * claims_.size() + roots_left_ + 1);
  const PatternClaim& claim = claims_.emplace_back(std::move(made));
  for (const NodeId n : claim.nodes) {
    count_step();
    searched_.taken[n] = true;
    claim_of_[n] = number;
  }
  for (NodeId n = no_path_back_after(claim.nodes.front()); n < claim.nodes.back(); n = no_path_back_after(n))
    open_end_[n] = n + 1;
}

std::string Claiming::why_not(const PatternMatch& match) {
  // A user's pattern of one node is claimed, for its name and attributes; a built-in one is not.
  if (match.nodes.size() < 2 && match.pattern->becomes == Becomes::kGroup && is_builtin(*match.pattern))
    return "it is one node, which is a group as it is";
  if (match.nodes.size() > limits_.max_fused_ops)
    return fmt::format("it has {} nodes, the limit is {}", match.nodes.size(), limits_.max_fused_ops);
  const std::vector<ValueId> outputs = needed_of(searched_.graph, searched_.uses, searched_.is_output, match.nodes);
  if (const std::size_t count = limits_.max_args == 0 ? 0 : inputs_of(match.nodes).size() + outputs.size();
      count > limits_.max_args)
    return fmt::format("its kernel would have {} arguments, the limit is {}", count, limits_.max_args);
  if (outputs.size() > 1) {
    if (std::string circle = circle_through(match); !circle.empty()) return circle;
  }
  if (match.pattern->becomes == Becomes::kLibrary) return "";
  if (std::string waits = why_waiting(match); !waits.empty()) return waits;
  const TrialResult lowered = lowering_.of(match.nodes, outputs);
  if (!lowered.known) return "whether its nodes are one kernel was not tried: too many ever new matches before";
  if (lowered.kernels != 1) return fmt::format("its nodes would be {} kernels", lowered.kernels);
  // A matrix product must keep the strength of its kernel form.
  for (const NodeId n : match.nodes) {
    count_step();
    if (!is_product(graph_.nodes[n])) continue;
    const Node& node = graph_.nodes[n];
    if (lowering_.of(std::span(&n, 1), std::span(&node.first_output, 1)).strength > lowered.strength)
      return fmt::format("with {} in it, the kernel would have a worse form", in_quotes(node.name));
  }
  if (lowered.row_gemm)
    if (std::string why = why_apart(match.nodes, lowered.seconds); !why.empty()) return why;
  return is_builtin(*match.pattern) ? why_nodes_alone(match.nodes, lowered.seconds) : "";
}

std::string Claiming::why_not_from_afar(const PatternMatch& match) {
  std::string circle = circle_outside(match);
  return circle.empty() && match.pattern->becomes != Becomes::kLibrary ? why_waiting(match) : circle;
}

std::string Claiming::why_waiting(const PatternMatch& match) {
  if (!is_builtin(*match.pattern)) return "";
  const auto is_inside = [&](NodeId n) { return std::ranges::binary_search(match.nodes, n); };
  for (const NodeId n : match.nodes) {
    count_step();
    if (!is_product(graph_.nodes[n])) continue;
    const ValueId shared = graph_.nodes[n].inputs[0];
    std::set<NodeId> beside;
    for (const NodeId reader : searched_.uses.of(shared))
      if (is_product(graph_.nodes[reader]) && !is_inside(reader)) beside.insert(reader);
    if (beside.empty()) continue;
    if (const NodeId first = made_of_one(match.nodes, beside); first != kNone)
      return fmt::format("{} would wait for what is made of {}, beside which it can stand",
                         in_quotes(graph_.nodes[n].name), in_quotes(graph_.nodes[first].name));
  }
  return "";
}

NodeId Claiming::made_of_one(const std::vector<NodeId>& nodes, const std::set<NodeId>& products) {
  struct Before {
    NodeId node;
    bool reduced;  // a reduction lies on the path from here to the match
  };
  std::vector<Before> before;
  for (const NodeId n : nodes) before.push_back({n, false});
  for (std::size_t i = 0; i < before.size() && before.size() < nodes.size() + kMostBefore; ++i)
    for (const ValueId v : graph_.nodes[before[i].node].inputs) {
      count_step();
      const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
      if (producer == kNone) continue;
      if (before[i].reduced && products.contains(producer)) return producer;
      const Before here{producer, before[i].reduced || reduces(producer)};
      const auto known = [&](const Before& b) { return b.node == producer && b.reduced >= here.reduced; };
      if (std::ranges::none_of(before, known)) before.push_back(here);
    }
  return kNone;
}

bool Claiming::reduces(NodeId n) {
  return !is_product(graph_.nodes[n]) && seconds_and_strength({n}).second >= strength(KernelForm::kRowReduction);
}

std::string Claiming::why_apart(const std::vector<NodeId>& nodes, double together) {
  std::vector<NodeId> product, behind;
  for (const NodeId n : nodes) {
    count_step();
    const Node& node = graph_.nodes[n];
    const bool reads_behind = std::ranges::any_of(node.inputs, [&](ValueId v) {
      return v != kNone && std::ranges::binary_search(behind, graph_.value(v).producer);
    });
    (reads_behind || reduces(n) ? behind : product).push_back(n);
  }
  if (product.empty() || behind.empty()) return "";
  const double apart = seconds_and_strength(product).first + seconds_and_strength(behind).first;
  if (together <= apart) return "";
  return fmt::format("one kernel is predicted to take {:.1f} us, the product and the reduction of its rows {:.1f} us",
                     together * 1e6, apart * 1e6);
}

std::string Claiming::why_nodes_alone(const std::vector<NodeId>& nodes, double together) {
  constexpr double kRounding = 1 + 1e-9;
  double alone = 0;
  for (const NodeId n : nodes) {
    count_step();
    const TrialResult& lowered = lowering_.of(
        std::span(&n, 1), needed_of(searched_.graph, searched_.uses, searched_.is_output, std::span(&n, 1)));
    if (!lowered.known) return "";
    alone += lowered.seconds;
  }
  if (together <= kRounding * alone) return "";
  return fmt::format("one kernel is predicted to take {:.1f} us, its nodes alone {:.1f} us", together * 1e6,
                     alone * 1e6);
}

std::pair<double, int> Claiming::seconds_and_strength(const std::vector<NodeId>& nodes) {
  const TrialResult& lowered =
      lowering_.of(nodes, needed_of(searched_.graph, searched_.uses, searched_.is_output, nodes));
  return {lowered.seconds, lowered.strength};
}

std::set<ValueId> Claiming::inputs_of(const std::vector<NodeId>& nodes) const {
  std::set<ValueId> inputs;
  for (const NodeId n : nodes)
    for (const ValueId v : graph_.nodes[n].inputs) {
      count_step();
      if (v == kNone) continue;
      const Value& value = graph_.value(v);
      const bool inside = value.producer != kNone && std::ranges::binary_search(nodes, value.producer);
      if (!inside && value.kind != Value::Kind::kNumber && value.kind != Value::Kind::kDim) inputs.insert(v);
    }
  return inputs;
}

NodeId Claiming::no_path_back_after(NodeId n) {
  NodeId end = n;
  while (open_end_[end] != end) end = open_end_[end];
  while (open_end_[n] != end) n = std::exchange(open_end_[n], end);
  return end;
}

std::string Claiming::circle_outside(const PatternMatch& match) {
  const auto escapes = [&](NodeId n) {
    const Node& node = graph_.nodes[n];
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
      if (std::ranges::any_of(searched_.uses.of(v),
                              [&](NodeId reader) { return !std::ranges::binary_search(match.nodes, reader); }))
        return true;
    return false;
  };
  if (std::none_of(match.nodes.begin(), match.nodes.end() - 1, escapes)) return "";
  return circle_through(match);
}

std::string Claiming::circle_through(const PatternMatch& match) {
  std::unordered_set<NodeId> seen;
  std::vector<NodeId> queue;
  const auto inside = [&](NodeId n) { return std::ranges::binary_search(match.nodes, n); };
  const NodeId last = no_path_back_after(match.root);
  const auto enter = [&](NodeId n) {
    if (n > last || seen.contains(n)) return;
    const std::span<const NodeId> together =
        claim_of_[n] == kNone ? std::span<const NodeId>(&n, 1) : std::span<const NodeId>(claims_[claim_of_[n]].nodes);
    for (const NodeId m : together) {
      count_step();
      seen.insert(m);
      queue.push_back(m);
    }
  };
  const auto follow = [&](NodeId n, bool from_inside) -> NodeId {
    const Node& node = graph_.nodes[n];
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
      for (const NodeId reader : searched_.uses.of(v)) {
        count_step();
        if (!inside(reader))
          enter(reader);
        else if (!from_inside)
          return n;
      }
    return kNone;
  };
  for (const NodeId n : match.nodes) follow(n, true);
  for (std::size_t next = 0; next < queue.size(); ++next) {
    count_step();
    if (next > kFarthestSearch) return "whether it closes a circle takes too long to find out";
    if (const NodeId back = follow(queue[next], false); back != kNone)
      return fmt::format("contracting it would close a circle through {}", in_quotes(graph_.nodes[back].name));
  }
  return "";
}

void Claiming::add(PatternMatch match) {
  const FusionPattern& pattern = *match.pattern;
  PatternClaim claim{.pattern = pattern.name, .code = pattern.code};
  for (const auto& [attribute, number] : pattern.group_attributes) {
    count_step();
    if (match.attributes[number])
      claim.attributes.emplace_back(attribute, text_of(*match.attributes[number]));
    else if (const auto scalar = number_of(graph_, match.values[number]))
      claim.attributes.emplace_back(attribute, fmt::format("{}", scalar->as_double()));
  }
  if (pattern.attributes_getter)
    for (auto& attribute : pattern.attributes_getter({searched_, match}))
      claim.attributes.push_back(std::move(attribute));
  std::vector<std::pair<std::uint32_t, NodeId>> parts;
  for (std::uint32_t i = 0; i < pattern.names.size(); ++i) {
    count_step();
    const ValueId v = match.values[i];
    const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
    if (producer == kNone || !std::ranges::binary_search(match.nodes, producer)) continue;
    const std::string& part = pattern.names[i];
    if (!part.starts_with('_') && part.find('\'') == std::string::npos) parts.emplace_back(i, producer);
  }
  claim.parts.reserve(parts.size());
  for (const auto& [name, producer] : parts) claim.parts.emplace_back(pattern.names[name], producer);
  if (pattern.bind_constants) claim.bound_constants = constants_of(match.nodes);
  claim.nodes = std::move(match.nodes);
  take_back(std::move(claim));
}

std::vector<ValueId> Claiming::constants_of(const std::vector<NodeId>& nodes) const {
  std::vector<ValueId> constants;
  for (const NodeId n : nodes)
    for (const ValueId v : graph_.nodes[n].inputs)
      if (v != kNone && graph_.constant_of(v) && std::ranges::find(constants, v) == constants.end())
        constants.push_back(v);
  return constants;
}
}  // namespace fusec
