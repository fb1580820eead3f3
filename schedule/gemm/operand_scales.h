// Splits an operand into a value that a narrow dtype represents exactly, and scales that can be applied to partial
// sums.
//
//   x[m, k] * s[m, k // 128]        x in float8: exact in float16; s is constant over 128 of K
//   (w[n, k] - z) * s[n]            w in int4, z in int8: integers up to 135, exact in float16 and bfloat16
#pragma once

#include <cstdint>
#include <vector>

#include "ir/expr.h"

namespace fusec {

// True if the dtype (float16, bfloat16, int8) represents the value exactly, whatever is loaded. Power-of-two scales of
// 4-bit values are assumed to be within the range of bfloat16.
bool is_exact_in(const ExprPool& pool, ExprId value, DType dtype);

// The integer under a conversion to float32 that does not round.
ExprId without_conversion(const ExprPool& pool, ExprId value);

struct OperandWithScales {
  ExprId value = kNoExpr;
  std::vector<ExprId> scales;
  std::int64_t block = 0;  // length of flattened K with constant scales; 0: all of K
};

// A float32 operand as a value times scales. If it cannot be split, the value is the whole operand.
OperandWithScales split_scales(const ExprPool& pool, ExprId operand, const std::vector<std::uint32_t>& k);

// The length of flattened K over which the value is constant; 0: all of K.
std::int64_t scale_block_of(const ExprPool& pool, ExprId value, const std::vector<std::uint32_t>& k);

// The length of K for which both hold; 0: all of K.
std::int64_t common_scale_block(std::int64_t a, std::int64_t b);

}  // namespace fusec
