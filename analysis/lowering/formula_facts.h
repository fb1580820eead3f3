// What lowering needs to know of a node's formula to decide whether it may stand inside another: where it loads from,
// and over which of its dimensions its reductions run anew.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/expr.h"
#include "ir/graph.h"

namespace fusec {

struct LoadFact {
  ValueId source = kNone;
  bool identity = false;  // exactly the output's index, same shape
  // For each dimension of the source: which dimension of the output its index is, kNoDim for a constant, kOther else.
  std::vector<int> dims;
  static constexpr int kConstantIndex = -1, kOther = -2;
  // Where the index is an output dimension over a constant (the group of a channel): which one, else kOther.
  std::vector<int> divided;
  // The output's dimensions that the index is made of; nothing where of anything else besides.
  std::vector<std::optional<std::vector<std::uint32_t>>> along;
  bool in_reduction = false;
  bool reused = false;               // stands in a reduction that runs for output elements that share this load
  std::vector<std::uint32_t> lacks;  // reused: the output's dimensions along which it is
  int times = 1;                     // how often an element is needed by one output's neighbours (a window's size)
  bool reduced_alone = false;        // it is all that FormulaFacts::reduction reduces
};

struct FormulaFacts {
  std::vector<LoadFact> loads;  // each distinct one
  int cost = 0;                 // operations an element, functions weighted, without those inside reductions
  bool reduces = false;
  bool contraction = false;  // a product of loads that are each reused over other dimensions: a matrix product
  bool product = false;      // the same where output dimensions of extent 1 count: a row times a matrix as well
  bool nested = false;       // reductions inside reductions over different dimensions: no single row form
  bool maximum = false;      // some reduction is a maximum
  std::optional<Reduction> reduction;  // the formula is this one, over a constant perhaps (sum, mean, amax)
  std::vector<bool> rows;              // output dimensions that the reductions depend on
};

// Of one result of a node that has a formula.
FormulaFacts formula_facts(const Graph& graph, const Node& node, std::size_t output);

// The same of one graph's values, each found out once: for as long as the graph stays as it is.
class FactsMemory {
 public:
  std::shared_ptr<const FormulaFacts> of(const Graph& graph, const Node& node, std::size_t output);

 private:
  std::unordered_map<ValueId, std::shared_ptr<const FormulaFacts>> known_;
};

}  // namespace fusec
