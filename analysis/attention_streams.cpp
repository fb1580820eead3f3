#include "analysis/attention_streams.h"

#include <algorithm>
#include <map>

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
  const std::function<const FormulaFacts*(ValueId)>& facts_of;
  const std::function<bool(ValueId)>& apart;
  std::map<ValueId, Stage> stages;

  Stage stage_of(ValueId v) const {
    const auto it = stages.find(v);
    return it == stages.end() || apart(v) ? Stage::kNone : it->second;
  }

  // From what is multiplied with the values back to the product of queries and keys.
  std::set<ValueId> back_to_product(ValueId weight) const {
    std::set<ValueId> inner{weight};
    std::vector<ValueId> stack{weight};
    while (!stack.empty()) {
      const FormulaFacts& facts = *facts_of(stack.back());
      stack.pop_back();
      if (facts.contraction) continue;
      for (const LoadFact& load : facts.loads)
        if (const ValueId v = resolve_tuple(graph, load.source); stage_of(v) != Stage::kNone && inner.insert(v).second)
          stack.push_back(v);
    }
    return inner;
  }
};

}  // namespace

std::vector<AttentionStream> attention_streams(const Graph& graph, const std::vector<NodeId>& nodes,
                                               const std::function<const FormulaFacts*(ValueId)>& facts_of,
                                               const std::function<bool(ValueId)>& apart) {
  std::vector<AttentionStream> streams;
  Search search{graph, facts_of, apart, {}};
  for (const NodeId n : nodes)
    for (std::uint32_t i = 0; i < graph.nodes[n].output_count; ++i) {
      const ValueId v = graph.nodes[n].first_output + i;
      const FormulaFacts* facts = facts_of(v);
      if (!facts) continue;
      Stage from = Stage::kNone;
      ValueId weight = kNone;
      for (const LoadFact& load : facts->loads) {
        const ValueId operand = resolve_tuple(graph, load.source);
        const Stage stage = search.stage_of(operand);
        from = std::max(from, stage);
        if (stage == Stage::kMaximum && load.in_reduction) weight = operand;
      }
      if (facts->contraction && facts->nested) {
        if (facts->maximum) streams.push_back({v, {}});
      } else if (facts->contraction) {
        if (weight != kNone) streams.push_back({v, search.back_to_product(weight)});
        search.stages[v] = Stage::kScore;
      } else if (from != Stage::kNone) {
        search.stages[v] = facts->maximum ? Stage::kMaximum : from;
      }
    }
  return streams;
}

}  // namespace fusec
