// Grouped GEMM: rows are sorted by their matrix (expert), and the ends of the groups are in memory, as in a mixture of
// experts.
//
//   expert(i) = number of e with offsets[e] <= i
//
// Offsets may be unordered and out of range. Rows after the last group have no matrix.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "schedule/gemm/contraction.h"

namespace fusec {

struct GroupedGemm {
  ExprId number = kNoExpr;  // index of a row's group
  ExprId end = kNoExpr;     // a group's end, an integer expression over `axis`
  std::uint32_t axis = 0;
};

// The contraction must choose among matrices (expert_index).
std::optional<GroupedGemm> find_grouped_gemm(const ExprPool& pool, const Contraction& contraction);

// True if the condition says that a row's group has a matrix.
bool is_expert_guard(const ExprPool& pool, const GroupedGemm& groups, const IndexExpr& matrices, ExprId condition);
// Returns a predicate on guards: true if a guard holds for all rows that are multiplied.
std::function<bool(ExprId guard)> holds_within_groups(const ExprPool& pool, const Contraction& contraction,
                                                      const std::optional<GroupedGemm>& groups);

}  // namespace fusec
