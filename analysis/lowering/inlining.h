// Which values of a group stand inside others as formulas, and which are stored in memory between its kernels.
//
//   {linear, gelu, mul}   linear and gelu stand inside mul; mul is stored
//   {softmax, matmul}     softmax is stored: inside matmul its rows would be computed anew for every column
//
// A matrix product may stand inside what reads it in pieces or in another order, and beside other products: whether
// that has a form of its own is known when the kernel has been built (schedule/lowering/lower_group), and taken back
// where it has none.
//
// What is stored besides the group's outputs: operands and results of ops that are no expression; results of reductions
// that some consumer reads otherwise than element by element or row by row; what would be computed many times over.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "analysis/lowering/attention_subgraphs.h"
#include "analysis/lowering/formula_facts.h"
#include "ir/graph.h"

namespace fusec {

// What a value is once the formulas before it are put into it.
struct Inlined {
  FormulaFacts facts;
  int cost = 0;
  bool reduces = false, contraction = false, nested = false;
  std::vector<bool> rows;
  std::vector<bool> segments =
      {};                  // where parts of those rows are reduced, too (schedule/reduction/row_segments): theirs
  ValueId origin = kNone;  // the value whose formula has the contraction (or nested reductions)
  bool joined = false;     // holds several contractions, or a reduction that is read at other indices than its own
  std::optional<Reduction> reduction = {};  // nothing but this of what does not reduce (FormulaFacts::reduction)
  bool vector_product = false;              // holds a product of one row, which is no contraction: rows, each a sum
  bool attention = false;  // holds an attention (attention_subgraphs) that is one kernel if its form allows
};

// Beyond this an intermediate is stored rather than computed for each element of a window that needs it. Costs count
// operations (a function is 8).
inline constexpr int kCheapWindow = 64;

class Inlining {
 public:
  Inlining(const Graph& graph, const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs,
           FactsMemory& facts);

  // Decides anew; to be called first, and after values were forced into memory.
  void decide();
  // From now on products and rows do not stand inside what reads them at other indices, nor products beside others:
  // whether the kernel then has a form of its own is known when it has been built.
  void separate_products() { products_separate_ = true; }
  bool products_separate() const { return products_separate_; }
  // Nor do rows stand inside reductions of parts of them.
  void separate_segments() { segments_separate_ = true; }
  // What stands inside one another as attention, with the result that each makes.
  const std::vector<AttentionSubgraph>& attention() const { return attention_subgraphs_; }
  // Is the value stored beside, by the kernel of a stream that holds it?
  bool stored_alongside(ValueId v) const { return stored_alongside_.contains(v); }
  // Those stored beside that are made of `v` and stand nowhere in the result, with their dimensions in v's.
  std::vector<std::pair<ValueId, std::vector<int>>> stored_alongside_from(ValueId v) const;
  // The kernel in which this result stands is no attention: next time what rows are reduced to is no part of it, then
  // the result is stored, then nothing streams to it.
  void reject_attention(ValueId result);
  // May rows of the product `v` be reduced where they are, by a consumer that is no product itself?
  bool may_reduce(const Inlined& operand, ValueId v, const Inlined& consumer) const;
  // Products of which rows are reduced inside what reads them: whether that has a form is known when it has been built.
  const std::set<ValueId>& reduced_products() const { return reduced_products_; }
  // From now on a view of what is stored is a formula, unless it is stored for itself: the kernel that makes what it is
  // a view of may read it from registers.
  void look_through_views() { through_views_ = true; }
  // Forces a value into memory from the next decision on; false where it was forced before.
  bool force_stored(ValueId v) {
    forced_.insert(v);
    const bool was_recomputed = recomputed_.erase(v) != 0;
    return must_store_.insert(v).second || stored_alongside_.contains(v) || was_recomputed;
  }

  // The same for what an output is a view of: it is stored as outputs are, by whichever kernel makes it on the way.
  bool store_as_output(ValueId v) {
    needed_.insert(v);
    return must_store_.insert(v).second;
  }

  // From now on outputs that are read at other indices than their own are computed anew by their readers, which then
  // need not wait for them. Only cheap ones do that hold no reduction in `decided`, which is without this. False where
  // there are none.
  bool recompute_outputs(const Inlining& decided);

  // The value, made of a concat, is stored part by part by the kernels of the concat's operands
  // (schedule/lowering/lower_group): the concat's own formula asks nothing of them.
  void store_in_parts(ValueId concat) { stored_in_parts_.insert(concat); }
  bool any_stored_in_parts() const { return !stored_in_parts_.empty(); }
  bool stored_in_parts(ValueId concat) const { return stored_in_parts_.contains(concat); }
  bool must_be_stored(ValueId v) const { return must_store_.contains(v); }

  bool inside(ValueId v) const { return inside_.contains(v); }
  bool stored(ValueId v) const { return stored_.contains(v); }
  bool in_memory(ValueId v) const { return !inside(v) || stored(v); }
  // Its formula stands inside what reads it, in whichever kernel.
  bool substituted(ValueId v) const { return inside(v) && (!stored(v) || recomputed_.contains(v)); }
  bool wanted(NodeId n) const { return wanted_.contains(n); }  // some output needs it
  // Is this 16-bit value quantized, compared or rounded to whole numbers, here or behind what is stored wide? It stays
  // unrounded: else one code in some hundred would be another than the graph says, and what is multiplied by it a whole
  // step off.
  bool feeds_quantization(ValueId v) const { return leads_to_codes_.contains(v); }
  // Nothing where the value has no formula.
  const FormulaFacts* facts(ValueId v) const;
  const Inlined& inlined(ValueId v) const { return inlined_.at(v); }
  // A view of something in memory is memory: what `v` has the elements of.
  std::optional<ValueId> alias_of(ValueId v) const;

 private:
  const Node& producer(ValueId v) const { return graph_.nodes[graph_.value(v).producer]; }
  void find_needed();
  void find_codes();
  void find_facts(FactsMemory& facts);
  void find_attention_subgraphs();
  Inlined combine(ValueId value, const FormulaFacts& facts, const Shape& shape);
  std::vector<bool> mapped_rows(const std::vector<bool>& rows, const LoadFact& load, ValueId v,
                                const Shape& shape) const;
  struct Rows {
    std::vector<bool> rows, segments;
  };
  std::optional<Rows> rows_together(const Inlined& operand, const LoadFact& load, ValueId v, const Inlined& consumer,
                                    bool rows_known, const Shape& shape) const;
  bool reads_elsewhere(const Inlined& operand, const LoadFact& load, ValueId v) const;
  static bool is_joined_reduction(const Inlined& operand, const LoadFact& load, const Inlined& consumer);
  bool may_inline(const Inlined& operand, const LoadFact& load, ValueId v, const Inlined& consumer, bool rows_known,
                  const Shape& shape) const;
  bool cheap_operand(const Inlined& operand, const LoadFact& load, ValueId v, const Inlined& consumer,
                     const Shape& shape) const;
  bool feeds_attention(ValueId v, ValueId consumer) const;

  const Graph& graph_;
  const std::vector<NodeId>& nodes_;
  std::set<ValueId> inside_, needed_, used_, must_store_, stored_, forced_, stored_alongside_, stored_in_parts_,
      recomputed_;
  std::set<ValueId> leads_to_codes_;
  std::set<NodeId> wanted_;
  std::map<ValueId, std::shared_ptr<const FormulaFacts>> facts_;
  std::map<ValueId, Inlined> inlined_;
  std::set<ValueId> reduced_products_;
  bool products_separate_ = false, segments_separate_ = false, through_views_ = false;
  std::vector<AttentionSubgraph> attention_subgraphs_;
  std::map<ValueId, std::size_t>
      attention_subgraph_of_;       // of results and inner values: which of `attention_subgraphs_`
  std::map<ValueId, int> refused_;  // results of streams: how often their kernel was no attention
  std::set<ValueId> without_rows_;  // results of streams without what rows are reduced to
};

}  // namespace fusec
