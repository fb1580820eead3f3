// Rows that choose their matrices in groups, one behind the other: where each group ends is in memory, as a mixture of
// experts has it.
//
//   expert(i) = how many e there are with offsets[e] <= i
//
// Offsets may come in any order and lie outside of the rows. Rows behind the last group have no matrix.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "schedule/gemm/contraction.h"

namespace fusec {

struct GroupedGemm {
  ExprId number = kNoExpr;  // of a row's group
  ExprId end = kNoExpr;     // an offset, an integer over `axis`
  std::uint32_t axis = 0;
};

// Of a product that chooses among matrices.
std::optional<GroupedGemm> find_grouped_gemm(const ExprPool& pool, const Contraction& product);

// Is the condition that a row's group has a matrix?
bool is_expert_guard(const ExprPool& pool, const GroupedGemm& groups, const IndexExpr& matrices, ExprId condition);
// Of guards: do they hold wherever there is something to multiply?
std::function<bool(ExprId guard)> holds_within_groups(const ExprPool& pool, const Contraction& product,
                                                      const std::optional<GroupedGemm>& groups);

}  // namespace fusec
