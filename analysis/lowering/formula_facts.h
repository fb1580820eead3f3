// Facts about the formula of a node. Lowering uses them to decide whether the formula may be substituted into another:
// where it loads from, and which of its dimensions its reductions depend on.
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
  bool identity = false;  // index equals the output's index, and shapes are equal
  // For each dimension of the source: which dimension of the output its index is, kNoDim for a constant, kOther else.
  std::vector<int> dims;
  static constexpr int kConstantIndex = -1, kOther = -2;
  // By dimension of the source: d if the index is output dimension d divided by a constant (a channel's group), else
  // kOther.
  std::vector<int> divided;
  // By dimension of the source: the output dimensions in the index; nullopt if the index contains anything else.
  std::vector<std::optional<std::vector<std::uint32_t>>> along;
  bool in_reduction = false;
  bool reused = false;               // is in a reduction that depends on more output dimensions than the load does
  std::vector<std::uint32_t> lacks;  // if reused: these further dimensions
  int times = 1;                     // neighbouring outputs that need an element (window size), at most 64
  bool reduced_alone = false;        // is the whole body of FormulaFacts::reduction
};

struct FormulaFacts {
  std::vector<LoadFact> loads;  // one entry per distinct load
  int cost = 0;                 // operations per element (a function is 8); those inside reductions count once
  bool reduces = false;
  bool matmul = false;       // matrix product: two operands, each reused along an output dimension of the other
  bool contraction = false;  // as `matmul`, but dimensions of extent 1 count: also a row times a matrix
  bool nested = false;       // reductions over different rows, or inside one another: not a single row form
  bool maximum = false;      // some reduction is a maximum
  std::optional<Reduction> reduction;  // the formula is this reduction, or a sum divided by a constant (mean)
  std::vector<bool> rows;              // output dimensions that the reductions depend on
};

// Returns the facts of result `output` of a node that has a formula.
FormulaFacts formula_facts(const Graph& graph, const Node& node, std::size_t output);

// Caches facts by value. Valid as long as the graph does not change.
class FactsMemory {
 public:
  std::shared_ptr<const FormulaFacts> of(const Graph& graph, const Node& node, std::size_t output);

 private:
  std::unordered_map<ValueId, std::shared_ptr<const FormulaFacts>> known_;
};

}  // namespace fusec
