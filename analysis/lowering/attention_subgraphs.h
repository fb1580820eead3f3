// Finds the values of a group that may form one attention kernel, from the facts of their formulas: a product with an
// operand that is made of a maximum over another product. These values are substituted into one another, although a
// product then stands inside a reduction. Whether the kernel really has the attention form is known only once it is
// built (schedule/lowering/lower_group).
//
//   scores = q k^T;  p = softmax(scores * scale + mask);  out = p v       result out; inner scores, mul, add, p
//   out = scaled_dot_product_attention(q, k, v)                            result out, nothing inner
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "analysis/lowering/formula_facts.h"
#include "ir/graph.h"

namespace fusec {

// A value that the attention kernel can store but its result does not read. It is made of `of`, which the result does
// read, element by element or by a reduction of each row. `dims`: for each of its dimensions the dimension of `of`, -1
// for extent 1.
struct DerivedValue {
  ValueId of = kNone;
  std::vector<int> dims;
};

struct AttentionSubgraph {
  ValueId result = kNone;
  std::set<ValueId> inner;  // values from the first product to the weights, and values derived from them
  // Inner values that the attention kernel also stores, such as weights that are an output.
  std::set<ValueId> stored_alongside;
  std::map<ValueId, DerivedValue> derived;
  // The derived values that reduce rows (sums, their logarithms), and values made of them.
  std::set<ValueId> row_reduced;
};

// Answers about the values of a group. `facts`: null if the value has no formula. `must_store`: it is stored in any
// case. `needed`: other groups or outputs need it. `with_rows`: reductions of rows may belong to the attention with
// this result.
struct GroupValues {
  std::function<const FormulaFacts*(ValueId)> facts;
  std::function<bool(ValueId)> must_store;
  std::function<bool(ValueId)> needed;
  std::function<bool(ValueId)> with_rows;
};

std::vector<AttentionSubgraph> attention_subgraphs(const Graph& graph, const std::vector<NodeId>& nodes,
                                                   const GroupValues& values);

}  // namespace fusec
