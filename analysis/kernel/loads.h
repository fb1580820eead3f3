// Where loads lie, and what is said by the guards that they have: the questions that several forms ask of both.
#pragma once

#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"

namespace fusec {

// Of the element that is read, in its tensor.
IndexExpr position_of(const Graph& graph, const ExprPool& pool, ExprId load);

// The loaded values that a place depends on, or a load's.
std::vector<ExprId> values_in(const IndexExpr& place);
std::vector<ExprId> values_in(const ExprNode& load);

// Does a value that was loaded say where?
bool by_values(const IndexExpr& e);

// Made of indices and numbers alone.
bool is_of_indices(const ExprPool& pool, ExprId guard);

// The load that a factor is, and what must hold, all of it, for the factor not to be 0.
struct GuardedLoad {
  ExprId load = kNoExpr;
  std::vector<ExprId> guards;  // made of indices
};
std::optional<GuardedLoad> guarded_load(const ExprPool& pool, ExprId factor);

// What a guard that compares indices says: `difference` is at least, or at most, so much.
struct IndexComparison {
  IndexExpr difference;
  bool at_least = false;
  std::int64_t bound = 0;
  auto operator<=>(const IndexComparison&) const = default;
};
std::optional<IndexComparison> index_comparison(const ExprPool& pool, ExprId guard);

// The comparisons of which all must hold for a condition to hold; nothing where it is made of more.
std::optional<std::vector<IndexComparison>> index_comparisons(const ExprPool& pool, ExprId condition);

// What is no less than 0 where, and only where, the comparison holds.
IndexExpr slack_of(const IndexComparison& c);

// `remainder(e, divisor) < 1`: what a transposed convolution asks of places between which nothing lies.
struct WholeQuotient {
  IndexExpr dividend, divisor;
};
std::optional<WholeQuotient> whole_quotient(const ExprPool& pool, ExprId guard);

}  // namespace fusec
