// Attention's score taken apart, for what the streaming form does better outside of it:
//
//   where(j <= i, 0.125 * sum_e q * k, -inf)      score sum_e q * k, scale 0.125, last key i
#pragma once

#include <optional>

#include "schedule/attention/attention_form.h"

namespace fusec {

// Constants go from the product's factors to the score, and from the score into score_scale.
void hoist_score_scale(Attention& form);

// Comparisons of indices that mask keys become first_key and last_key: causal masks and windows.
void find_key_range(Attention& form);

// The 16-bit dtype to which a factor is, or unfused would be, rounded.
std::optional<DType> tensor_core_grid(const ExprPool& pool, ExprId factor);

bool is_zero(const ExprNode& n);
bool is_negative_infinity(const ExprNode& n);  // -inf

}  // namespace fusec
