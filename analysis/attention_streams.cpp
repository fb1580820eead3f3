#include "analysis/attention_streams.h"

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/inlining.h"

namespace fusec {
namespace {

// What a value is made of, in the order in which attention makes it.
enum class Stage : std::uint8_t {
  kNone,
  kScore,    // of a product, element by element
  kMaximum,  // of a maximum over scores
};

struct Search {
  const Graph& graph;
  const ValuesOfGroup& values;
  std::map<ValueId, Stage> stages;

  Stage stage_of(ValueId v) const {
    const auto it = stages.find(v);
    return it == stages.end() || values.apart(v) ? Stage::kNone : it->second;
  }

  // From what is multiplied with the values back to the product of queries and keys.
  std::set<ValueId> back_to_product(ValueId weight) const {
    std::set<ValueId> inner{weight};
    std::vector<ValueId> stack{weight};
    while (!stack.empty()) {
      const FormulaFacts& facts = *values.facts(stack.back());
      stack.pop_back();
      if (facts.product) continue;
      for (const LoadFact& load : facts.loads)
        if (const ValueId v = resolve_tuple(graph, load.source); stage_of(v) != Stage::kNone && inner.insert(v).second)
          stack.push_back(v);
    }
    return inner;
  }

  // What is made of inner values element by element, for somebody else: weights that are dropped out, or converted.
  void add_derived(const std::vector<NodeId>& nodes, AttentionStream& stream) const {
    for (const NodeId n : nodes)
      for (std::uint32_t i = 0; i < graph.nodes[n].output_count; ++i) {
        const ValueId v = graph.nodes[n].first_output + i;
        const FormulaFacts* facts = values.facts(v);
        if (!facts || facts->reduces || v == stream.result || stream.inner.contains(v) || values.apart(v)) continue;
        ValueId made_of = kNone;
        bool elsewhere = false;
        for (const LoadFact& load : facts->loads) {
          const ValueId operand = resolve_tuple(graph, load.source);
          if (!stream.inner.contains(operand)) continue;
          const auto further = stream.derived.find(operand);
          made_of = further == stream.derived.end() ? operand : further->second;
          elsewhere = elsewhere || !load.identity;
        }
        if (made_of == kNone || elsewhere) continue;
        stream.inner.insert(v);
        stream.derived[v] = made_of;
      }
  }

  // A stream that ends with `result`. What others need of it is read by nothing else of the group.
  std::optional<AttentionStream> stream(const std::vector<NodeId>& nodes, ValueId result, ValueId weight) const {
    AttentionStream stream{result, back_to_product(weight), {}, {}};
    add_derived(nodes, stream);
    for (const ValueId v : stream.inner)
      if (values.needed(v)) stream.beside.insert(v);
    if (stream.beside.empty()) return stream;
    for (const NodeId n : nodes)
      for (std::uint32_t i = 0; i < graph.nodes[n].output_count; ++i) {
        const ValueId reader = graph.nodes[n].first_output + i;
        const FormulaFacts* facts = values.facts(reader);
        // A view of what is stored is that memory.
        if (!facts || reader == result || stream.inner.contains(reader) || graph.nodes[n].op->view) continue;
        for (const LoadFact& load : facts->loads)
          if (stream.beside.contains(resolve_tuple(graph, load.source))) return std::nullopt;
      }
    return stream;
  }
};

}  // namespace

std::vector<AttentionStream> attention_streams(const Graph& graph, const std::vector<NodeId>& nodes,
                                               const ValuesOfGroup& values) {
  std::vector<AttentionStream> streams;
  Search search{graph, values, {}};
  for (const NodeId n : nodes)
    for (std::uint32_t i = 0; i < graph.nodes[n].output_count; ++i) {
      const ValueId v = graph.nodes[n].first_output + i;
      const FormulaFacts* facts = values.facts(v);
      if (!facts) continue;
      Stage from = Stage::kNone;
      ValueId weight = kNone;
      for (const LoadFact& load : facts->loads) {
        const ValueId operand = resolve_tuple(graph, load.source);
        const Stage stage = search.stage_of(operand);
        from = std::max(from, stage);
        if (stage == Stage::kMaximum && load.in_reduction) weight = operand;
      }
      if (facts->product && facts->nested) {
        if (facts->maximum) streams.push_back({v, {}, {}, {}});
      } else if (facts->product) {
        if (weight != kNone)
          if (auto stream = search.stream(nodes, v, weight)) streams.push_back(std::move(*stream));
        search.stages[v] = Stage::kScore;
      } else if (from != Stage::kNone) {
        search.stages[v] = facts->maximum ? Stage::kMaximum : from;
      }
    }
  return streams;
}

}  // namespace fusec
