#include "analysis/lowering/inlining.h"

#include <algorithm>
#include <cmath>

#include "analysis/lowering/feeds_quantization.h"
#include "ir/budget.h"
#include "ir/tuple_field.h"
#include "ir/type.h"

namespace fusec {
namespace {

// An operand of a reduction that is reused and costs more than this is stored.
constexpr int kCheapOperand = 8;
// An operand of a matrix product, recomputed once per tile of this many rows or columns. The rates are rounded from an
// A100: operations a second, bytes a second, seconds per launch.
constexpr double kProductTile = 64, kOperationRate = 1e13, kBandwidth = 1.5e12, kLaunchSeconds = 3e-6;
constexpr std::int64_t kLongestProductRow = 1024;  // longest row of a product that a block reduces, in elements
constexpr std::int64_t kLongestWithSegments = 1 << 15;

}  // namespace

Inlining::Inlining(const Graph& graph, const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs,
                   FactsMemory& facts)
    : graph_(graph), nodes_(nodes) {
  for (const NodeId n : nodes)
    for (std::uint32_t i = 0; i < graph.nodes[n].output_count; ++i)
      group_->inside.insert(graph.nodes[n].first_output + i);
  for (const ValueId v : outputs) needed_.insert(v);
  find_needed();
  find_quantized();
  find_facts(facts);
}

const FormulaFacts* Inlining::facts(ValueId v) const {
  const auto it = group_->facts.find(v);
  return it == group_->facts.end() ? nullptr : it->second.get();
}

// Finds the values that the outputs need, from the last node to the first.
void Inlining::find_needed() {
  for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it) {
    const Node& node = graph_.nodes[*it];
    bool wanted = false;
    for (std::uint32_t i = 0; i < node.output_count; ++i)
      wanted = wanted || group_->used.contains(node.first_output + i);
    for (std::uint32_t i = 0; i < node.output_count; ++i) wanted = wanted || needed_.contains(node.first_output + i);
    if (!wanted) continue;
    group_->wanted.insert(*it);
    for (const ValueId v : node.inputs)
      if (v != kNone) group_->used.insert(resolve_tuple(graph_, v));
    for (const ValueId v : node.inputs)
      if (v != kNone) group_->used.insert(v);
  }
  for (const ValueId v : needed_)
    if (inside(v) && graph_.value(v).producer != kNone) must_store_.insert(v);
  for (const NodeId n : group_->wanted) {
    const Node& node = graph_.nodes[n];
    if (node.op->formula || node.op->special == Special::kTuple) continue;
    for (const ValueId v : node.inputs)
      if (v != kNone && inside(resolve_tuple(graph_, v))) must_store_.insert(resolve_tuple(graph_, v));
    for (std::uint32_t i = 0; i < node.output_count; ++i) must_store_.insert(node.first_output + i);
  }
}

void Inlining::find_quantized() {
  std::set<ValueId> before;
  for (auto n = nodes_.rbegin(); n != nodes_.rend(); ++n) {
    count_step();
    const Node& node = graph_.nodes[*n];
    bool leads = quantizes(graph_, node) || node.feeds_quantization;
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
      leads = leads || before.contains(v);
    if (!leads) continue;
    for (const ValueId v : node.inputs)
      if (v != kNone && inside(v)) before.insert(v);
  }
  for (const ValueId v : before)
    if (!graph_.type(v).is_tuple &&
        (graph_.tensor(v).dtype == DType::kFloat16 || graph_.tensor(v).dtype == DType::kBFloat16))
      group_->leads_to_quantized.insert(v);
}

void Inlining::find_facts(FactsMemory& facts) {
  for (const NodeId n : nodes_) {
    const Node& node = graph_.nodes[n];
    if (!group_->wanted.contains(n) || !node.op->formula) continue;
    for (std::uint32_t i = 0; i < node.output_count; ++i) {
      const ValueId v = node.first_output + i;
      if (group_->used.contains(v) || needed_.contains(v)) group_->facts[v] = facts.of(graph_, node, i);
    }
  }
}

bool Inlining::recompute_outputs(const Inlining& decided) {
  // A kernel that writes into an input's buffer must wait for all readers of the input.
  if (std::ranges::any_of(graph_.aliases, [&](const Alias& a) { return needed_.contains(a.output); })) return false;
  // No other kernel would run next to a matrix product or an attention, so nothing is gained.
  if (std::ranges::any_of(decided.inlined_, [](const auto& v) { return v.second.matmul || v.second.nested; }))
    return false;
  for (const auto& [reader, facts] : group_->facts)
    for (const LoadFact& load : facts->loads) {
      const ValueId v = resolve_tuple(graph_, load.source);
      if (load.identity || load.in_reduction || !needed_.contains(v) || !group_->facts.contains(v)) continue;
      ValueId made = v;
      for (std::optional<ValueId> of = v; of && inside(*of); of = decided.alias_of(*of)) made = *of;
      const auto it = decided.inlined_.find(made);
      if (it != decided.inlined_.end() && !it->second.reduces) recomputed_.insert(v);
    }
  return !recomputed_.empty();
}

// Returns the memory behind `v` if it is a view or tuple item of a value in memory.
std::optional<ValueId> Inlining::alias_of(ValueId v) const {
  const Node& node = producer(v);
  if (node.op->special == Special::kTuple) {
    const ValueId field = resolve_tuple(graph_, v);
    if (field != v && in_memory(field)) return field;
    return std::nullopt;
  }
  if (!node.op->view || node.inputs.empty() || node.inputs[0] == kNone) return std::nullopt;
  const ValueId operand = resolve_tuple(graph_, node.inputs[0]);
  if (!must_store_.contains(v) && (recomputed_.contains(operand) || (through_views_ && inside(node.inputs[0]))))
    return std::nullopt;
  const Value::Kind kind = graph_.value(operand).kind;
  if (kind == Value::Kind::kNumber || kind == Value::Kind::kDim) return std::nullopt;
  if (!in_memory(operand) && !(stored_alongside(operand) && !attention_subgraph_of_.contains(v))) return std::nullopt;
  if (graph_.tensor(operand).dtype != graph_.tensor(v).dtype) return std::nullopt;
  return operand;
}

void Inlining::find_attention_subgraphs() {
  attention_subgraph_of_.clear();
  stored_alongside_.clear();
  attention_subgraphs_ = attention_subgraphs(
      graph_, nodes_,
      {.facts = [&](ValueId v) { return facts(v); },
       .must_store =
           [&](ValueId v) { return must_store_.contains(v) && (forced_.contains(v) || !needed_.contains(v)); },
       .needed = [&](ValueId v) { return needed_.contains(v); },
       .with_rows = [&](ValueId v) { return !without_rows_.contains(v); }});
  std::erase_if(attention_subgraphs_, [&](const AttentionSubgraph& s) {
    const auto refused = refused_.find(s.result);
    if (refused != refused_.end() && refused->second == 1) stored_.insert(s.result);
    return refused != refused_.end() && refused->second > 1;
  });
  for (std::size_t i = 0; i < attention_subgraphs_.size(); ++i) {
    attention_subgraph_of_.try_emplace(attention_subgraphs_[i].result, i);
    for (const ValueId v : attention_subgraphs_[i].inner) attention_subgraph_of_.try_emplace(v, i);
    for (const ValueId v : attention_subgraphs_[i].stored_alongside) {
      stored_alongside_.insert(v);
      stored_.erase(v);
    }
  }
}

std::vector<std::pair<ValueId, std::vector<int>>> Inlining::stored_alongside_from(ValueId v) const {
  std::vector<std::pair<ValueId, std::vector<int>>> made;
  const auto subgraph = attention_subgraph_of_.find(v);
  if (subgraph == attention_subgraph_of_.end()) return made;
  for (const auto& [derived, from] : attention_subgraphs_[subgraph->second].derived)
    if (from.of == v && stored_alongside(derived)) made.emplace_back(derived, from.dims);
  return made;
}

void Inlining::reject_attention(ValueId result) {
  const auto subgraph = attention_subgraph_of_.find(result);
  const bool rows =
      subgraph != attention_subgraph_of_.end() && !attention_subgraphs_[subgraph->second].row_reduced.empty();
  if (rows && without_rows_.insert(result).second) return;
  ++refused_[result];
}

// Returns whether `v` is an inner value of the attention that the consumer belongs to.
bool Inlining::feeds_attention(ValueId v, ValueId consumer) const {
  const auto a = attention_subgraph_of_.find(v), b = attention_subgraph_of_.find(consumer);
  return a != attention_subgraph_of_.end() && b != attention_subgraph_of_.end() && a->second == b->second &&
         attention_subgraphs_[a->second].result != v;
}

// Decides which values are stored. Repeats until nothing changes, because storing a value changes its consumers.
void Inlining::decide() {
  stored_ = must_store_;
  find_attention_subgraphs();
  for (bool changed = true; changed;) {
    const std::size_t before = stored_.size() - recomputed_.size();  // never shrinks
    inlined_.clear();
    reduced_contractions_.clear();
    for (const NodeId n : nodes_) {
      if (!group_->wanted.contains(n)) continue;
      const Node& node = graph_.nodes[n];
      for (std::uint32_t i = 0; i < node.output_count; ++i) {
        const ValueId v = node.first_output + i;
        if (node.op->formula) {
          const auto it = group_->facts.find(v);
          if (it != group_->facts.end()) {
            if (!stored_.contains(v) && alias_of(v)) stored_.insert(v);
            inlined_[v] = combine(v, *it->second, graph_.tensor(v).shape);
          }
        } else if (node.op->special == Special::kTuple && must_store_.contains(v)) {
          // An item that must be in memory is its field; loads see through to the field.
          const ValueId field = resolve_tuple(graph_, v);
          if (field != v && inside(field)) stored_.insert(field);
        }
      }
    }
    changed = stored_.size() - recomputed_.size() != before;
  }
}

// Returns the value with its operands' formulas substituted. Stores the operands that cannot be substituted.
Inlined Inlining::combine(ValueId value, const FormulaFacts& facts, const Shape& shape) {
  Inlined mine{&facts, facts.cost, facts.reduces, facts.matmul, facts.nested, facts.rows};
  if (facts.matmul || facts.nested) mine.origin = value;
  if (!facts.contraction) mine.reduction = facts.reduction;
  const auto subgraph = attention_subgraph_of_.find(value);
  mine.attention = subgraph != attention_subgraph_of_.end() && (facts.contraction || facts.nested);
  mine.vector_contraction = facts.contraction && !facts.matmul && subgraph == attention_subgraph_of_.end();
  bool rows_known = facts.reduces;
  for (const LoadFact& load : facts.loads) {
    const ValueId v = resolve_tuple(graph_, load.source);
    if (!substituted(v) || stored_in_parts_.contains(value)) continue;
    const auto it = inlined_.find(v);
    if (it == inlined_.end()) continue;
    const Inlined& operand = it->second;
    if ((recomputed_.contains(v) && operand.reduces) ||
        (!feeds_attention(v, value) && !may_inline(operand, load, v, mine, rows_known, shape))) {
      stored_.insert(v);
      recomputed_.erase(v);
      continue;
    }
    mine.cost += operand.cost;
    if ((operand.matmul || operand.vector_contraction) && load.in_reduction && !facts.matmul)
      reduced_contractions_.insert(v);
    if (operand.reduces) {
      std::optional<Rows> merged = merged_rows(operand, load, v, mine, rows_known, shape);
      mine.rows = merged ? std::move(merged->rows) : mapped_rows(operand.rows, load, v, shape);
      if (merged) mine.segments = std::move(merged->segments);
      rows_known = true;
      mine.reduces = true;
      if (!is_joined_reduction(operand, load, mine)) mine.reduction.reset();
      mine.joined = mine.joined || operand.joined || reads_elsewhere(operand, load, v) ||
                    (operand.matmul && (!load.identity || (mine.matmul && mine.origin != operand.origin)));
      mine.matmul = mine.matmul || operand.matmul;
      mine.vector_contraction = mine.vector_contraction || operand.vector_contraction;
      mine.nested = mine.nested || operand.nested;
      mine.attention = mine.attention || operand.attention;
      if (operand.origin != kNone) mine.origin = operand.origin;
    }
  }
  if (subgraph != attention_subgraph_of_.end() && attention_subgraphs_[subgraph->second].result == value) {
    mine.nested = true;
    mine.rows = facts.rows;
    mine.origin = value;
  }
  return mine;
}

std::vector<bool> Inlining::mapped_rows(const std::vector<bool>& of_operand, const LoadFact& load, ValueId v,
                                        const Shape& shape) const {
  std::vector<bool> rows(shape.size(), false);
  const Shape& operand_shape = graph_.tensor(v).shape;
  for (std::size_t d = 0; d < of_operand.size(); ++d)
    if (of_operand[d] && !operand_shape[d].is(1) && load.along[d])
      for (const std::uint32_t axis : *load.along[d])
        if (!shape[axis].is(1)) rows[axis] = true;
  return rows;
}

// Returns the rows and segments of the consumer with the operand substituted. Either both have the same rows, or the
// rows of one are segments of the other's. Returns nothing otherwise.
std::optional<Inlining::Rows> Inlining::merged_rows(const Inlined& operand, const LoadFact& load, ValueId v,
                                                    const Inlined& consumer, bool rows_known,
                                                    const Shape& shape) const {
  Rows mapped{mapped_rows(operand.rows, load, v, shape), {}};
  if (!operand.segments.empty()) mapped.segments = mapped_rows(operand.segments, load, v, shape);
  if (!rows_known) return mapped;
  Rows mine{consumer.rows, consumer.segments};
  if (mapped.rows != mine.rows) {
    // The wider row must fit a block.
    const auto lies_in = [&](const std::vector<bool>& wider, const std::vector<bool>& rows) {
      IndexExpr row = 1;
      for (std::size_t d = 0; d < rows.size(); ++d) {
        if (wider[d] && !rows[d]) return false;
        if (!wider[d]) row *= shape[d];
      }
      return row.as_constant() && *row.as_constant() <= kLongestWithSegments;
    };
    if (segments_separate_) return std::nullopt;
    if (mine.segments.empty() && lies_in(mapped.rows, mine.rows)) {
      mine = {mapped.rows, mine.rows};
    } else if (mapped.segments.empty() && !consumer.facts->reduces && lies_in(mine.rows, mapped.rows)) {
      mapped = {mine.rows, mapped.rows};
    } else {
      return std::nullopt;
    }
  } else if (!mapped.segments.empty() && consumer.facts->reduces) {
    return std::nullopt;
  }
  if (mine.segments.empty()) return mapped;
  if (!mapped.segments.empty() && mapped.segments != mine.segments) return std::nullopt;
  return mine;
}

// Returns whether the load permutes the operand's rows, or reads only some of them.
bool Inlining::reads_elsewhere(const Inlined& operand, const LoadFact& load, ValueId v) const {
  for (std::size_t d = 0; d < operand.rows.size(); ++d)
    if (operand.rows[d] && !graph_.tensor(v).shape[d].is(1) && load.dims[d] < 0 && load.divided[d] < 0) return true;
  return false;
}

// Returns whether the consumer and the operand are reductions of the same kind that analysis/kernel/reduction_rewrites
// joins into one.
bool Inlining::is_joined_reduction(const Inlined& operand, const LoadFact& load, const Inlined& consumer) {
  return load.reduced_alone && operand.reduction && operand.reduction == consumer.reduction;
}

bool Inlining::may_reduce(const Inlined& operand, ValueId v, const Inlined& consumer) const {
  const bool contraction = operand.matmul || operand.vector_contraction;
  if (!contraction || operand.nested || operand.attention || contractions_are_separate_) return false;
  if (!consumer.facts->reduces || consumer.facts->contraction || consumer.facts->nested) return false;
  IndexExpr row = 1;
  const Shape& shape = graph_.tensor(v).shape;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (d >= consumer.facts->rows.size() || !consumer.facts->rows[d]) row *= shape[d];
  const auto length = row.as_constant();
  return length && *length <= kLongestProductRow;
}

bool Inlining::may_inline(const Inlined& operand, const LoadFact& load, ValueId v, const Inlined& consumer,
                          bool rows_known, const Shape& shape) const {
  if (!operand.reduces) {
    if (load.reused && operand.cost > kCheapOperand &&
        !(consumer.facts->contraction && cheap_operand(operand, load, v, consumer, shape)))
      return false;
    // Such an operand is computed once per element, as if it were stored.
    if (load.in_reduction && !load.reused && load.times == 1) return true;
    return load.identity || operand.cost * load.times <= kCheapWindow;
  }
  if (operand.attention && operand.nested && !load.in_reduction && !consumer.reduces) return true;
  if (may_reduce(operand, v, consumer) && !load.reused) return true;
  if (operand.matmul && !operand.nested && !contractions_are_separate_ && !load.in_reduction &&
      (!consumer.reduces || consumer.matmul))
    return true;
  if (operand.matmul || operand.nested)
    return load.identity && (!consumer.reduces || consumer.origin == operand.origin);
  if (consumer.matmul || consumer.nested) return false;
  const Shape& operand_shape = graph_.tensor(v).shape;
  const bool joins = is_joined_reduction(operand, load, consumer);
  for (std::size_t d = 0; d < operand.rows.size(); ++d)
    if (!joins && operand.rows[d] && !operand_shape[d].is(1) && load.dims[d] < 0 && load.divided[d] < 0 &&
        (contractions_are_separate_ || load.in_reduction || !load.along[d] || load.along[d]->empty()))
      return false;
  return merged_rows(operand, load, v, consumer, rows_known, shape).has_value();
}

// Returns whether recomputing the operand in every tile takes no longer than storing and reading it.
bool Inlining::cheap_operand(const Inlined& operand, const LoadFact& load, ValueId v, const Inlined& consumer,
                             const Shape& shape) const {
  const auto extent = [&](const Dim& d) { return static_cast<double>(value_at_hint(d, graph_.symbols)); };
  double elements = 1, others = 1;
  for (const Dim& d : graph_.tensor(v).shape) elements *= extent(d);
  // A tile of attention has all columns of its rows, so only the longest axis counts.
  for (const std::uint32_t d : load.lacks)
    others = consumer.attention ? std::max(others, extent(shape[d])) : others * extent(shape[d]);
  // A row-times-matrix product has no tiles: the row is read for every column.
  const double times = consumer.facts->matmul ? std::ceil(others / kProductTile) - 1 : others - 1;
  const double stored_bytes = elements * bits(graph_.tensor(v).dtype) / 8;
  return elements * operand.cost * times / kOperationRate <= 2 * stored_bytes / kBandwidth + kLaunchSeconds;
}

}  // namespace fusec
