#include "analysis/attention_streams.h"

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/inlining.h"
#include "ir/tuple_field.h"

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
        DerivedValue made;
        bool elsewhere = false, of_rows = false;
        for (const LoadFact& load : facts->loads) {
          const ValueId operand = resolve_tuple(graph, load.source);
          if (!stream.inner.contains(operand)) continue;
          const bool row = stream.of_rows.contains(operand);
          const auto dims = row ? dims_of_load(v, load) : same_dims(v);
          elsewhere = elsewhere || !dims || (!row && !load.identity);
          of_rows = of_rows || row;
          if (!elsewhere) made = through(stream, operand, *dims);
        }
        if (made.of == kNone || elsewhere) continue;
        stream.inner.insert(v);
        stream.derived[v] = std::move(made);
        if (of_rows) stream.of_rows.insert(v);
      }
  }

  // For each dimension of `v` that of the operand which it indexes; nothing where one of them indexes none.
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

  // Made of `operand`, or of what that is made of.
  static DerivedValue through(const AttentionStream& stream, ValueId operand, const std::vector<int>& dims) {
    const auto further = stream.derived.find(operand);
    if (further == stream.derived.end()) return {operand, dims};
    DerivedValue made{further->second.of, {}};
    for (const int d : dims) made.dims.push_back(d < 0 ? -1 : further->second.dims[static_cast<std::size_t>(d)]);
    return made;
  }

  // What rows of scores, or of their exponentials, are reduced to for somebody else: sums that divide the result, the
  // logarithm of a sum.
  void add_rows(const std::vector<NodeId>& nodes, AttentionStream& stream) const {
    for (const NodeId n : nodes)
      for (std::uint32_t i = 0; i < graph.nodes[n].output_count; ++i) {
        const ValueId v = graph.nodes[n].first_output + i;
        const FormulaFacts* facts = values.facts(v);
        if (!facts || !facts->reduces || facts->product || facts->nested || v == stream.result ||
            stream.inner.contains(v) || values.apart(v) || facts->loads.empty())
          continue;
        const ValueId operand = resolve_tuple(graph, facts->loads[0].source);
        const auto dims = dims_of_load(v, facts->loads[0]);
        const bool alike = std::ranges::all_of(facts->loads, [&](const LoadFact& load) {
          return resolve_tuple(graph, load.source) == operand && dims_of_load(v, load) == dims;
        });
        if (!alike || !stream.inner.contains(operand) || stream.of_rows.contains(operand) || !dims) continue;
        stream.inner.insert(v);
        stream.derived[v] = through(stream, operand, *dims);
        stream.of_rows.insert(v);
      }
  }

  // Are they computed of the result?
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

  // A stream that ends with `result`. What others need of it is read by nothing else of the group.
  std::optional<AttentionStream> stream(const std::vector<NodeId>& nodes, ValueId result, ValueId weight,
                                        bool with_rows) const {
    AttentionStream stream{result, back_to_product(weight), {}, {}, {}};
    if (with_rows) add_rows(nodes, stream);
    add_derived(nodes, stream);
    for (const ValueId v : stream.inner)
      if (values.needed(v)) stream.beside.insert(v);
    if (stream.beside.empty()) return stream;
    const std::set<ValueId> after = behind(nodes, result);
    for (const NodeId n : nodes)
      for (std::uint32_t i = 0; i < graph.nodes[n].output_count; ++i) {
        const ValueId reader = graph.nodes[n].first_output + i;
        const FormulaFacts* facts = values.facts(reader);
        // A view of what is stored is that memory.
        if (!facts || reader == result || stream.inner.contains(reader) || graph.nodes[n].op->view) continue;
        for (const LoadFact& load : facts->loads) {
          const ValueId read = resolve_tuple(graph, load.source);
          if (stream.beside.contains(read) && !(stream.of_rows.contains(read) && after.contains(reader)))
            return std::nullopt;
        }
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
        if (facts->maximum) streams.push_back({v, {}, {}, {}, {}});
      } else if (facts->product) {
        if (weight != kNone) {
          auto stream = values.with_rows(v) ? search.stream(nodes, v, weight, true) : std::nullopt;
          if (!stream) stream = search.stream(nodes, v, weight, false);
          if (stream) streams.push_back(std::move(*stream));
        }
        search.stages[v] = Stage::kScore;
      } else if (from != Stage::kNone) {
        search.stages[v] = facts->maximum ? Stage::kMaximum : from;
      }
    }
  return streams;
}

}  // namespace fusec
