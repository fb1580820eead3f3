#include "transforms/decompose_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "ir/infer.h"
#include "ir/ops/positions.h"
#include "schedule/kernel_forms.h"
#include "schedule/lowering/lower_group.h"
#include "transforms/remove_dead.h"
#include "transforms/simplify_algebra.h"

namespace fusec {
namespace {

constexpr std::int64_t kMostAttentionNodesTried = 20'000;
enum : std::size_t { kQuery, kKey, kValue, kMask };

// Thrown if an op rejects its operands or needs a check at launch. The attention then stays one node.
struct NotDecomposed {};

Attributes with(std::vector<std::pair<std::string_view, AttributeValue>> list) {
  Attributes attributes;
  for (auto& [name, value] : list) attributes.set(name, std::move(value));
  return attributes;
}

// The nodes that replace one attention: first to last, at the end of the graph. No node reads them yet.
struct Decomposition {
  NodeId attention = kNone;
  NodeId first = kNone;
  NodeId last = kNone;  // the second matmul
};

class Decomposing {
 public:
  Decomposing(Graph& graph, NodeId attention)
      : graph_(graph),
        attention_(attention),
        node_(graph.nodes[attention]),
        dtype_(graph.tensor(node_.inputs[kQuery]).dtype) {}

  Decomposition run() {
    const auto first = static_cast<NodeId>(graph_.nodes.size());
    ValueId p = probabilities(masked(scores()));
    if (!is_wide()) p = add("cast", {p}, with({{"dtype", dtype_}}));
    const ValueId out = add("matmul", {p, repeated(kValue)});
    if (graph_.type(out) != graph_.type(node_.first_output)) throw NotDecomposed{};
    return {.attention = attention_, .first = first, .last = graph_.value(out).producer};
  }

 private:
  bool is_wide() const { return bits(dtype_) >= 32; }
  const Attributes& attributes() const { return graph_.attributes(node_); }
  bool has_mask() const { return node_.inputs.size() > kMask && node_.inputs[kMask] != kNone; }
  ValueId number(double x) { return graph_.add_number(Scalar::floating(x)); }
  ValueId widened(ValueId v) { return is_wide() ? v : add("cast", {v}, with({{"dtype", DType::kFloat32}})); }

  ValueId scores() {
    const ValueId keys =
        add("transpose", {widened(repeated(kKey))}, with({{"dim0", std::int64_t{-2}}, {"dim1", std::int64_t{-1}}}));
    const ValueId product = add("matmul", {widened(node_.inputs[kQuery]), keys});
    return add("mul", {product, number(scale())});
  }

  double scale() const {
    if (attributes().has("scale")) return attributes().number("scale");
    const auto depth = graph_.tensor(node_.inputs[kQuery]).shape.back().as_constant();
    if (!depth) throw NotDecomposed{};
    return 1.0 / std::sqrt(static_cast<double>(*depth));
  }

  // Keys or values with heads repeated to the number of query heads.
  ValueId repeated(std::size_t operand) {
    const ValueId v = node_.inputs[operand];
    if (!attributes().flag("enable_gqa", false)) return v;
    const auto heads_of = [&](ValueId x) {
      const Shape& shape = graph_.tensor(x).shape;
      return shape[shape.size() - 3];
    };
    const Dim heads = heads_of(node_.inputs[kQuery]), groups = heads_of(v);
    if (heads == groups) return v;
    const auto repeats = ops::exact_quotient(heads, groups);
    if (!repeats) throw NotDecomposed{};
    return add("repeat_interleave", {v}, with({{"repeats", *repeats}, {"dim", std::int64_t{-3}}}));
  }

  ValueId masked(ValueId scores) {
    const double minus_infinity = -std::numeric_limits<double>::infinity();
    if (attributes().flag("is_causal", false))
      return add("where", {up_to_the_query(graph_.tensor(scores).shape), scores, number(minus_infinity)});
    if (!has_mask()) return scores;
    const ValueId mask = node_.inputs[kMask];
    if (graph_.tensor(mask).dtype == DType::kBool) return add("where", {mask, scores, number(minus_infinity)});
    return add("add", {scores, widened(mask)});
  }

  ValueId up_to_the_query(const Shape& scores) {
    const auto places = [&](const Dim& count) {
      const auto known = count.as_constant();
      const AttributeValue end = known ? AttributeValue(Scalar::whole(*known)) : AttributeValue(count);
      return add("arange", {}, with({{"end", end}, {"dtype", DType::kInt64}}));
    };
    const Dim queries = scores[scores.size() - 2], keys = scores.back();
    const ValueId query = add("unsqueeze", {places(queries)}, with({{"dim", std::int64_t{1}}}));
    return add("le", {places(keys), query});
  }

  ValueId probabilities(ValueId scores) {
    if (!has_mask()) return add("softmax", {scores}, with({{"dim", std::int64_t{-1}}}));
    const Attributes row = with({{"dim", std::vector<std::int64_t>{-1}}, {"keepdim", true}});
    const ValueId greatest = add("amax", {scores}, row);
    const ValueId none = add("eq", {greatest, number(-std::numeric_limits<double>::infinity())});
    const ValueId shift = add("where", {none, number(0), greatest});
    const ValueId exponentials = add("exp", {add("sub", {scores, shift})});
    const ValueId total = add("sum", {exponentials}, row);
    return add("div", {exponentials, add("where", {none, number(1), total})});
  }

  ValueId add(std::string_view op, std::initializer_list<ValueId> inputs, const Attributes& attributes = {}) {
    Node made;
    made.op = graph_.op(op);
    for (const ValueId v : inputs) made.inputs.push_back(v);
    made.file_position = node_.file_position;
    std::vector<LaunchCheck> checks;
    std::vector<ValueType> types;
    try {
      types = infer_types(graph_, *made.op, made.inputs, attributes, {}, "", &checks);
    } catch (const OpError&) {
      throw NotDecomposed{};
    }
    if (!checks.empty()) throw NotDecomposed{};
    made.attributes = graph_.intern(attributes);
    made.name = free_name();
    const std::string name = made.name;
    return graph_.nodes[graph_.add_node(std::move(made), types, {name})].first_output;
  }

  std::string free_name() {
    for (;;) {
      std::string candidate = fmt::format("{}.{}", node_.name, ++names_);
      if (graph_.find_node(candidate) == kNone && graph_.find_value(candidate) == kNone) return candidate;
    }
  }

  Graph& graph_;
  const NodeId attention_;
  const Node node_;  // a copy, because adding nodes moves the graph's nodes
  const DType dtype_;
  int names_ = 0;
};

bool has_no_form(const Graph& graph, NodeId n) {
  const Node& node = graph.nodes[n];
  return std::ranges::any_of(lower_group(graph, {n}, {node.first_output}), [](const LoweredUnit& unit) {
    if (unit.kind != LoweredUnit::Kind::kKernel) return false;
    const KernelForm form = form_of(unit.kernel).form;
    return form == KernelForm::kRowReduction || form == KernelForm::kThreadPerElement;
  });
}

// Attention nodes that lower to no attention kernel. Nodes with equal attributes and types are tried once.
std::vector<NodeId> attention_without_form(const Graph& graph) {
  std::vector<NodeId> found;
  std::map<std::vector<std::uint32_t>, bool> known;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op->name != "scaled_dot_product_attention" || !node.fuse || node.pattern) continue;
    std::vector<std::uint32_t> key{node.attributes};
    for (const ValueId v : node.inputs) key.push_back(v == kNone ? kNone : graph.value(v).type);
    const auto [at, is_new] = known.try_emplace(std::move(key), false);
    if (is_new) at->second = has_no_form(graph, n);
    if (at->second) found.push_back(n);
  }
  return found;
}

// Whether two groups are predicted to be faster than the attention: the scores with their softmax, and the second
// matmul.
bool is_faster(const Graph& graph, const Decomposition& d, TrialLowering& lowering) {
  const auto seconds_of = [&](std::vector<NodeId> nodes) -> std::optional<double> {
    const ValueId out = graph.nodes[nodes.back()].first_output;
    const TrialResult& result = lowering.of(nodes, std::span(&out, 1));
    return result.known ? std::optional(result.seconds) : std::nullopt;
  };
  // Nodes after the probabilities belong to the second matmul, including the repetition of value heads.
  const ValueId weights = graph.nodes[d.last].inputs[0];
  std::vector<NodeId> before, behind;
  for (NodeId n = d.first; n <= d.last; ++n) (n <= graph.value(weights).producer ? before : behind).push_back(n);
  const auto whole = seconds_of({d.attention}), first = seconds_of(before), second = seconds_of(behind);
  return whole && first && second && *first + *second < *whole;
}

// Turns the attention node into the second matmul. The node that was added for it becomes dead.
void replace(CanonicalGraph& canonical, const Decomposition& d) {
  Graph& graph = canonical.graph;
  Node& attention = graph.nodes[d.attention];
  attention.op = graph.nodes[d.last].op;
  attention.inputs = graph.nodes[d.last].inputs;
  attention.attributes = graph.nodes[d.last].attributes;
  for (NodeId n = d.first; n < d.last; ++n) canonical.stands_for.copy(d.attention, n);
}

}  // namespace

void decompose_attention(CanonicalGraph& canonical, TrialMemory& memory) {
  Graph& graph = canonical.graph;
  const std::vector<NodeId> candidates = attention_without_form(graph);
  if (candidates.empty()) return;
  std::vector<Decomposition> made;
  for (const NodeId n : candidates) {
    try {
      made.push_back(Decomposing(graph, n).run());
    } catch (const NotDecomposed&) {
    }
  }
  canonical.stands_for.resize(graph.nodes.size());
  std::erase_if(made, [&, lowering = TrialLowering(graph, memory, kMostAttentionNodesTried)](
                          const Decomposition& d) mutable { return !is_faster(graph, d, lowering); });
  for (const Decomposition& d : made) replace(canonical, d);
  canonical.heirs.clear();
  remove_dead(canonical);
  if (!made.empty()) simplify_algebra(canonical);
}

}  // namespace fusec
