// Questions about loads: where they read, and which conditions guard them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"

namespace fusec {

// Returns the offset, in elements, of a load within its tensor, or of an output's element within the output.
IndexExpr position_of(const Graph& graph, const ExprPool& pool, ExprId load);
IndexExpr position_of(const ExprPool& pool, const KernelOutput& output);

// A load or a store: its offset within the tensor, in elements, and what the elements are.
struct Access {
  IndexExpr at;
  DType dtype;
};
// Returns the loads below the roots, then the stores of the outputs.
std::vector<Access> accesses_of(const Graph& graph, const ExprPool& pool, const std::vector<ExprId>& roots,
                                std::span<const KernelOutput> outputs = {});

// Return the loaded values that an index, or the indices of a load, depend on.
std::vector<ExprId> values_in(const IndexExpr& place);
std::vector<ExprId> values_in(const ExprNode& load);

// Returns whether the index depends on a loaded value.
bool by_values(const IndexExpr& e);

// Returns whether the guard contains indices and constants only: no loads, no reductions.
bool is_of_indices(const ExprPool& pool, ExprId guard);

// An operand that is one load, and conditions that must all hold for it not to be 0.
struct GuardedLoad {
  ExprId load = kNoExpr;
  std::vector<ExprId> guards;  // each made of indices only
};
std::optional<GuardedLoad> guarded_load(const ExprPool& pool, ExprId factor);

// A guard that compares indices: `difference` >= `bound` if `at_least`, else `difference` <= `bound`.
struct IndexComparison {
  IndexExpr difference;
  bool at_least = false;
  std::int64_t bound = 0;
  auto operator<=>(const IndexComparison&) const = default;
};
std::optional<IndexComparison> index_comparison(const ExprPool& pool, ExprId guard);

// Returns the comparisons that must all hold for `condition` to hold; nothing if it contains anything else.
std::optional<std::vector<IndexComparison>> index_comparisons(const ExprPool& pool, ExprId condition);

// Returns an index that is >= 0 exactly where the comparison holds.
IndexExpr slack_of(const IndexComparison& c);

// The guard `dividend % divisor < 1`: a transposed convolution reads an element only where the quotient is whole.
struct WholeQuotient {
  IndexExpr dividend, divisor;
};
std::optional<WholeQuotient> whole_quotient(const ExprPool& pool, ExprId guard);

}  // namespace fusec
