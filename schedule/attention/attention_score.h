// Splits constants and masks off attention's score; the attention kernel handles them more cheaply outside of it:
//
//   where(j <= i, 0.125 * sum_e q * k, -inf)      score sum_e q * k, scale 0.125, last key i
#pragma once

#include <optional>

#include "schedule/attention/attention_form.h"

namespace fusec {

// Moves constants from the operands of the first product to the score, and from the score to score_scale.
void hoist_score_scale(Attention& form);

// Turns index comparisons that mask keys (causal masks, windows) into first_key and last_key.
void find_key_range(Attention& form);

// Returns the 16-bit dtype to which an operand is rounded, or would be if it were stored.
std::optional<DType> tensor_core_grid(const ExprPool& pool, ExprId operand_expr);

bool is_zero(const ExprNode& n);
bool is_negative_infinity(const ExprNode& n);  // -inf

}  // namespace fusec
