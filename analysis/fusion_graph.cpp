#include "analysis/fusion_graph.h"

#include "ir/budget.h"
#include "ir/error.h"

namespace fusec {
namespace {

constexpr NodeId kAhead = 12;

// Returns 1 for each value that a node reads or the graph returns.
std::vector<std::uint8_t> used_values(const Graph& graph) {
  std::vector<std::uint8_t> used(graph.value_count(), 0);
  for (const Node& node : graph.nodes) {
    count_step();
    for (const ValueId v : node.inputs) {
      if (v != kNone) used[v] = 1;
    }
  }
  for (const ValueId v : graph.outputs) used[v] = 1;
  return used;
}

// Returns whether the operand is prepared and its reader is not. The operand is then stored, as a graph output is.
bool is_ready(const Graph& graph, ValueId operand, const Node& reader) {
  return !reader.prepared && graph.nodes[graph.value(operand).producer].prepared;
}

// Adds one vertex for all nodes of a claim and maps all their results to it.
void add_claim(const Graph& graph, std::span<const OpPattern> kinds, const PatternClaim& claim,
               ForwardGraphBuilder& builder, FusionGraph& result) {
  OpPattern kind = claim.code == GroupCode::kFusec ? OpPattern::kElemwise : OpPattern::kOpaque;
  for (const NodeId n : claim.nodes) kind = std::max(kind, kinds[n]);
  const Vertex v = builder.add(kind);
  result.node_of.push_back(claim.nodes.back());
  result.fusion_disabled.push_back(0);
  result.weight.resize(v, 1);
  result.weight.push_back(static_cast<std::uint32_t>(claim.nodes.size()));
  for (const NodeId n : claim.nodes) {
    count_step();
    const Node& node = graph.nodes[n];
    result.vertex_of.push_back(v);
    for (const ValueId operand : node.inputs) {
      const Vertex from = operand == kNone ? kNoVertex : result.vertex_of_value[operand];
      if (from == kNoVertex || from == v) continue;
      if (is_ready(graph, operand, node))
        builder.mark_external(from);
      else
        builder.add_operand(from);
    }
    for (ValueId value = node.first_output; value < node.first_output + node.output_count; ++value)
      result.vertex_of_value[value] = v;
  }
}

}  // namespace

FusionGraph build_fusion_graph(const Graph& graph, std::span<const OpPattern> kinds, PatternSource source,
                               std::span<const PatternClaim> claims) {
  if (kinds.size() != graph.nodes.size()) throw InternalError("fusion graph: a pattern for every node is needed");
  std::vector<std::uint8_t> used;  // filled at the first node with several results
  FusionGraph result;
  ForwardGraphBuilder builder;
  result.vertex_of.reserve(graph.nodes.size());
  result.node_of.reserve(graph.nodes.size());
  result.fusion_disabled.reserve(graph.nodes.size());
  result.vertex_of_value.assign(graph.value_count(), kNoVertex);
  builder.reserve(graph.nodes.size(), 2 * graph.nodes.size());
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    count_step();
    if (!claims.empty() && claims.front().nodes.front() == n) {
      add_claim(graph, kinds, claims.front(), builder, result);
      n = claims.front().nodes.back();
      claims = claims.subspan(1);
      continue;
    }
    const Node& node = graph.nodes[n];
    // In a graph of a million nodes every operand list is a cache miss: prefetch the next ones.
    if (n + kAhead < graph.nodes.size()) __builtin_prefetch(graph.nodes[n + kAhead].inputs.data());
    const Vertex v = builder.add(node.fuse ? kinds[n] : OpPattern::kOpaque);
    result.vertex_of.push_back(v);
    result.node_of.push_back(n);
    result.fusion_disabled.push_back(!node.fuse);
    for (const ValueId operand : node.inputs) {
      const Vertex from = operand == kNone ? kNoVertex : result.vertex_of_value[operand];
      if (from == kNoVertex) continue;
      if (is_ready(graph, operand, node))
        builder.mark_external(from);
      else
        builder.add_operand(from);
    }
    if (!has_items(node)) {
      result.vertex_of_value[node.first_output] = v;
      continue;
    }
    if (used.empty()) used = used_values(graph);
    const OpPattern item =
        source == PatternSource::kTvm ? OpPattern::kInjective : std::min(builder.pattern(v), OpPattern::kInjective);
    for (ValueId value = node.first_output; value < node.first_output + node.output_count; ++value) {
      if (!used[value]) continue;
      result.vertex_of_value[value] = builder.add(item);
      builder.add_operand(v);
      result.node_of.push_back(n);
      result.fusion_disabled.push_back(0);
    }
  }
  if (!result.weight.empty()) result.weight.resize(result.node_of.size(), 1);
  for (const ValueId output : graph.outputs) {
    count_step();
    if (result.vertex_of_value[output] != kNoVertex) builder.mark_external(result.vertex_of_value[output]);
  }
  result.forward = std::move(builder).finish();
  return result;
}

}  // namespace fusec
