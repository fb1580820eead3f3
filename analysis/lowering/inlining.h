// Decides which values of a group are substituted into their consumers as formulas, and which are stored in memory
// between the group's kernels.
//
//   {linear, gelu, mul}   linear and gelu are substituted into mul; mul is stored
//   {softmax, matmul}     softmax is stored: matmul would recompute its rows for every column
//
// Stored are the group's outputs; operands and results of ops without a formula; results of reductions that a consumer
// reads neither element by element nor row by row; values that would be recomputed too often.
//
// A matrix product may be substituted into a consumer that reads it in pieces or in another order, and next to other
// products. Whether the kernel then has a form is known only once it is built; schedule/lowering/lower_group takes the
// substitution back if it has none.
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

// A value with the formulas of its producers substituted.
struct Inlined {
  const FormulaFacts* facts = nullptr;  // of its own formula
  int cost = 0;
  bool reduces = false, matmul = false, nested = false;
  std::vector<bool> rows;
  // Output dimensions that reductions of segments of these rows depend on (schedule/reduction/row_segments); empty:
  // none.
  std::vector<bool> segments = {};
  ValueId origin = kNone;  // the value whose formula has the contraction or the nested reductions
  bool joined = false;     // has several contractions, or a reduction that is read at indices other than its own
  std::optional<Reduction> reduction = {};  // as FormulaFacts::reduction, after substitution
  bool vector_contraction = false;          // has a row-times-matrix product, which counts as a reduction per row
  // Has a product of an attention (attention_subgraphs), which is one kernel if its form allows.
  bool attention = false;
};

// An intermediate of higher cost is stored instead of recomputed for each element of a window. Costs count operations
// (a function is 8).
inline constexpr int kCheapWindow = 64;

class Inlining {
 public:
  Inlining(const Graph& graph, const std::vector<NodeId>& nodes, const std::vector<ValueId>& outputs,
           FactsMemory& facts);

  // Decides what is stored. Call it first, and again after any change below.
  void decide();
  // From the next decision on, substitutes products and reductions into consumers only at their own indices, and does
  // not substitute several products into one kernel.
  void separate_contractions() { contractions_are_separate_ = true; }
  bool contractions_are_separate() const { return contractions_are_separate_; }
  // From the next decision on, does not substitute rows into reductions of segments of these rows.
  void separate_segments() { segments_separate_ = true; }
  // Returns the subgraphs that are substituted as attention.
  const std::vector<AttentionSubgraph>& attention() const { return attention_subgraphs_; }
  // Returns whether an attention kernel that contains `v` stores it as a second output.
  bool stored_alongside(ValueId v) const { return stored_alongside_.contains(v); }
  // Returns the values stored alongside that are derived from `v` and not part of the result, with the dimension of `v`
  // for each of theirs.
  std::vector<std::pair<ValueId, std::vector<int>>> stored_alongside_from(ValueId v) const;
  // Reports that the kernel with this result is not attention. Each call removes one thing from the next decision:
  // first reductions of rows, then the substitution of the result into its consumers, then the attention.
  void reject_attention(ValueId result);
  // Returns whether a consumer that is not a product may reduce the rows of product `v` in the same kernel.
  bool may_reduce(const Inlined& operand, ValueId v, const Inlined& consumer) const;
  // Returns the products that are substituted into reductions of their rows. Whether the kernel has a form is known
  // only once it is built.
  const std::set<ValueId>& reduced_contractions() const { return reduced_contractions_; }
  // From the next decision on, substitutes views of stored values too, unless the view itself must be stored. The
  // kernel that makes the stored value can then read it from registers.
  void look_through_views() { through_views_ = true; }
  // Forces a value into memory from the next decision on. Returns false if it was forced before.
  bool force_stored(ValueId v) {
    forced_.insert(v);
    const bool was_recomputed = recomputed_.erase(v) != 0;
    return must_store_.insert(v).second || stored_alongside_.contains(v) || was_recomputed;
  }

  // Treats the base of an output view as an output: any kernel that makes it stores it. Returns false if it was stored
  // before.
  bool store_as_output(ValueId v) {
    needed_.insert(v);
    return must_store_.insert(v).second;
  }

  // From the next decision on, readers recompute outputs that they read at other indices, and need not wait for them.
  // `decided` is a decision without this; outputs that contain a reduction there are not recomputed. Returns false if
  // there are none.
  bool recompute_outputs(const Inlining& decided);

  // The kernels of the concat's operands store this value in parts (schedule/lowering/lower_group), so nothing is
  // substituted into the concat.
  void store_in_parts(ValueId concat) { stored_in_parts_.insert(concat); }
  bool any_stored_in_parts() const { return !stored_in_parts_.empty(); }
  bool stored_in_parts(ValueId concat) const { return stored_in_parts_.contains(concat); }
  bool must_be_stored(ValueId v) const { return must_store_.contains(v); }

  bool inside(ValueId v) const { return group_->inside.contains(v); }
  bool stored(ValueId v) const { return stored_.contains(v); }
  bool in_memory(ValueId v) const { return !inside(v) || stored(v); }
  // Returns whether the consumers of `v` contain its formula instead of a load.
  bool substituted(ValueId v) const { return inside(v) && (!stored(v) || recomputed_.contains(v)); }
  bool wanted(NodeId n) const { return group_->wanted.contains(n); }  // some output needs it
  // Returns whether this 16-bit value is quantized, compared or rounded to integers, in this kernel or after a wider
  // stored value. The kernel then rounds it to its dtype; otherwise about one quantized value in a hundred would be one
  // step off.
  bool feeds_quantization(ValueId v) const { return group_->leads_to_quantized.contains(v); }
  // Returns null if the value has no formula.
  const FormulaFacts* facts(ValueId v) const;
  const Inlined& inlined(ValueId v) const { return inlined_.at(v); }
  // Returns the value in memory that `v` is a view of.
  std::optional<ValueId> alias_of(ValueId v) const;

 private:
  const Node& producer(ValueId v) const { return graph_.nodes[graph_.value(v).producer]; }
  void find_needed();
  void find_quantized();
  void find_facts(FactsMemory& facts);
  void find_attention_subgraphs();
  Inlined combine(ValueId value, const FormulaFacts& facts, const Shape& shape);
  std::vector<bool> mapped_rows(const std::vector<bool>& rows, const LoadFact& load, ValueId v,
                                const Shape& shape) const;
  struct Rows {
    std::vector<bool> rows, segments;
  };
  std::optional<Rows> merged_rows(const Inlined& operand, const LoadFact& load, ValueId v, const Inlined& consumer,
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
  // What no decision changes. Copies share it.
  struct Group {
    std::set<ValueId> inside, used, leads_to_quantized;
    std::set<NodeId> wanted;
    std::map<ValueId, std::shared_ptr<const FormulaFacts>> facts;
  };
  std::shared_ptr<Group> group_ = std::make_shared<Group>();
  std::set<ValueId> needed_, must_store_, stored_, forced_, stored_alongside_, stored_in_parts_, recomputed_;
  std::map<ValueId, Inlined> inlined_;
  std::set<ValueId> reduced_contractions_;
  bool contractions_are_separate_ = false, segments_separate_ = false, through_views_ = false;
  std::vector<AttentionSubgraph> attention_subgraphs_;
  // By result and inner value of an attention: its index in attention_subgraphs_.
  std::map<ValueId, std::size_t> attention_subgraph_of_;
  std::map<ValueId, int> refused_;  // by result of an attention: how often its kernel was not attention
  std::set<ValueId> without_rows_;  // results of attentions that exclude reductions of rows
};

}  // namespace fusec
