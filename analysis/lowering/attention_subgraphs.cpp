#include "analysis/lowering/attention_subgraphs.h"

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/lowering/inlining.h"
#include "ir/tuple_field.h"

namespace fusec {
namespace {

// How far a value is on the way through an attention.
enum class Stage : std::uint8_t {
  kNone,
  kScore,    // made of a product, element by element
  kMaximum,  // made of a maximum over scores
};

struct Search {
  const Graph& graph;
  const GroupValues& values;
  std::map<ValueId, Stage> stages;

  Stage stage_of(ValueId v) const {
    const auto it = stages.find(v);
    return it == stages.end() || values.must_store(v) ? Stage::kNone : it->second;
  }

  // Returns the values from the weights (the operand of the second product) back to the product of queries and keys.
  std::set<ValueId> back_to_product(ValueId weight) const {
    std::set<ValueId> inner{weight};
    std::vector<ValueId> stack{weight};
    while (!stack.empty()) {
      const FormulaFacts& facts = *values.facts(stack.back());
      stack.pop_back();
      if (facts.contraction) continue;
      for (const LoadFact& load : facts.loads)
        if (const ValueId v = resolve_tuple(graph, load.source); stage_of(v) != Stage::kNone && inner.insert(v).second)
          stack.push_back(v);
    }
    return inner;
  }

  // Adds values that are made of inner values element by element for another reader: weights with dropout, or
  // converted.
  void add_derived(const std::vector<NodeId>& nodes, AttentionSubgraph& subgraph) const {
    for (const NodeId n : nodes)
      for (std::uint32_t i = 0; i < graph.nodes[n].output_count; ++i) {
        const ValueId v = graph.nodes[n].first_output + i;
        const FormulaFacts* facts = values.facts(v);
        if (!facts || facts->reduces || v == subgraph.result || subgraph.inner.contains(v) || values.must_store(v))
          continue;
        DerivedValue made;
        bool elsewhere = false, row_reduced = false;
        for (const LoadFact& load : facts->loads) {
          const ValueId operand = resolve_tuple(graph, load.source);
          if (!subgraph.inner.contains(operand)) continue;
          const bool row = subgraph.row_reduced.contains(operand);
          const auto dims = row ? dims_of_load(v, load) : same_dims(v);
          elsewhere = elsewhere || !dims || (!row && !load.identity);
          row_reduced = row_reduced || row;
          if (!elsewhere) made = through(subgraph, operand, *dims);
        }
        if (made.of == kNone || elsewhere) continue;
        subgraph.inner.insert(v);
        subgraph.derived[v] = std::move(made);
        if (row_reduced) subgraph.row_reduced.insert(v);
      }
  }

  // Returns, for each dimension of `v`, the dimension of the operand that it indexes; nothing if some dimension indexes
  // none.
  std::optional<std::vector<int>> dims_of_load(ValueId v, const LoadFact& load) const {
    std::vector<int> dims(graph.tensor(v).shape.size(), -1);
    for (std::size_t k = 0; k < load.dims.size(); ++k)
      if (load.dims[k] >= 0) dims[static_cast<std::size_t>(load.dims[k])] = static_cast<int>(k);
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (dims[d] < 0 && !graph.tensor(v).shape[d].is(1)) return std::nullopt;
    return dims;
  }

  std::optional<std::vector<int>> same_dims(ValueId v) const {
    std::vector<int> dims(graph.tensor(v).shape.size());
    for (std::size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<int>(d);
    return dims;
  }

  // Returns the operand, or the value it is derived from, with the dimensions of `v` mapped to it.
  static DerivedValue through(const AttentionSubgraph& subgraph, ValueId operand, const std::vector<int>& dims) {
    const auto further = subgraph.derived.find(operand);
    if (further == subgraph.derived.end()) return {operand, dims};
    DerivedValue made{further->second.of, {}};
    for (const int d : dims) made.dims.push_back(d < 0 ? -1 : further->second.dims[static_cast<std::size_t>(d)]);
    return made;
  }

  // Adds reductions of rows of scores or exponentials for another reader: sums that divide the result, the logarithm of
  // a sum.
  void add_rows(const std::vector<NodeId>& nodes, AttentionSubgraph& subgraph) const {
    for (const NodeId n : nodes)
      for (std::uint32_t i = 0; i < graph.nodes[n].output_count; ++i) {
        const ValueId v = graph.nodes[n].first_output + i;
        const FormulaFacts* facts = values.facts(v);
        if (!facts || !facts->reduces || facts->contraction || facts->nested || v == subgraph.result ||
            subgraph.inner.contains(v) || values.must_store(v) || facts->loads.empty())
          continue;
        const ValueId operand = resolve_tuple(graph, facts->loads[0].source);
        const auto dims = dims_of_load(v, facts->loads[0]);
        const bool alike = std::ranges::all_of(facts->loads, [&](const LoadFact& load) {
          return resolve_tuple(graph, load.source) == operand && dims_of_load(v, load) == dims;
        });
        if (!alike || !subgraph.inner.contains(operand) || subgraph.row_reduced.contains(operand) || !dims) continue;
        subgraph.inner.insert(v);
        subgraph.derived[v] = through(subgraph, operand, *dims);
        subgraph.row_reduced.insert(v);
      }
  }

  // Returns the result and everything computed from it.
  std::set<ValueId> behind(const std::vector<NodeId>& nodes, ValueId result) const {
    std::set<ValueId> found{result};
    for (const NodeId n : nodes)
      for (std::uint32_t i = 0; i < graph.nodes[n].output_count; ++i) {
        const ValueId v = graph.nodes[n].first_output + i;
        const FormulaFacts* facts = values.facts(v);
        if (facts && std::ranges::any_of(facts->loads, [&](const LoadFact& load) {
              return found.contains(resolve_tuple(graph, load.source));
            }))
          found.insert(v);
      }
    return found;
  }

  // Returns the attention that ends with `result`; nothing if another value of the group reads what is stored
  // alongside.
  std::optional<AttentionSubgraph> subgraph(const std::vector<NodeId>& nodes, ValueId result, ValueId weight,
                                            bool with_rows) const {
    AttentionSubgraph subgraph{result, back_to_product(weight), {}, {}, {}};
    if (with_rows) add_rows(nodes, subgraph);
    add_derived(nodes, subgraph);
    for (const ValueId v : subgraph.inner)
      if (values.needed(v)) subgraph.stored_alongside.insert(v);
    if (subgraph.stored_alongside.empty()) return subgraph;
    const std::set<ValueId> after = behind(nodes, result);
    for (const NodeId n : nodes)
      for (std::uint32_t i = 0; i < graph.nodes[n].output_count; ++i) {
        const ValueId reader = graph.nodes[n].first_output + i;
        const FormulaFacts* facts = values.facts(reader);
        // A view of a stored value is that memory.
        if (!facts || reader == result || subgraph.inner.contains(reader) || graph.nodes[n].op->view) continue;
        for (const LoadFact& load : facts->loads) {
          const ValueId read = resolve_tuple(graph, load.source);
          if (subgraph.stored_alongside.contains(read) &&
              !(subgraph.row_reduced.contains(read) && after.contains(reader)))
            return std::nullopt;
        }
      }
    return subgraph;
  }
};

}  // namespace

std::vector<AttentionSubgraph> attention_subgraphs(const Graph& graph, const std::vector<NodeId>& nodes,
                                                   const GroupValues& values) {
  std::vector<AttentionSubgraph> streams;
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
      if (facts->contraction && facts->nested) {
        if (facts->maximum) streams.push_back({v, {}, {}, {}, {}});
      } else if (facts->contraction) {
        if (weight != kNone) {
          auto subgraph = values.with_rows(v) ? search.subgraph(nodes, v, weight, true) : std::nullopt;
          if (!subgraph) subgraph = search.subgraph(nodes, v, weight, false);
          if (subgraph) streams.push_back(std::move(*subgraph));
        }
        search.stages[v] = Stage::kScore;
      } else if (from != Stage::kNone) {
        search.stages[v] = facts->maximum ? Stage::kMaximum : from;
      }
    }
  return streams;
}

}  // namespace fusec
