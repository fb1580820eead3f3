// Which values of a group may make one attention kernel, by the ops' facts alone: a product whose factor is made of a
// maximum over another product. They then stand inside one another though a product stands inside a reduction; whether
// the kernel really has the form of attention is known when it has been built (schedule/lowering/lower_group).
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

// A value that the result does not read: of which value that it does read it is made, element by element, or, if it is
// what a row is reduced to, row by row. `dims`: for each of its dimensions that of the other value, -1 for extent 1.
struct DerivedValue {
  ValueId of = kNone;
  std::vector<int> dims;
};

struct AttentionSubgraph {
  ValueId result = kNone;
  std::set<ValueId> inner;  // from the first product to what is multiplied with the values, and what is made of these
  std::set<ValueId>
      stored_alongside;  // those of them that are stored all the same, by the kernel: weights that are an output
  std::map<ValueId, DerivedValue> derived;
  std::set<ValueId> row_reduced;  // of the derived ones: rows' sums, their logarithms
};

// Of the values of a group: null where one has no formula; whether it is stored in any case; whether others need it.
// Whether what rows are reduced to is to be part of the stream with this result.
struct GroupValues {
  std::function<const FormulaFacts*(ValueId)> facts;
  std::function<bool(ValueId)> must_store;
  std::function<bool(ValueId)> needed;
  std::function<bool(ValueId)> with_rows;
};

std::vector<AttentionSubgraph> attention_subgraphs(const Graph& graph, const std::vector<NodeId>& nodes,
                                                   const GroupValues& values);

}  // namespace fusec
