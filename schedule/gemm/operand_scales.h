// What of a product's factor is multiplied exactly in a narrow type, and what may wait until after the multiplication.
//
//   x[m, k] * s[m, k // 128]        x in float8: on the grid of float16; s is the same for 128 of the depth
//   (w[n, k] - z) * s[n]            w in int4, z in int8: integers up to 135, on the grid of float16 and of bfloat16
#pragma once

#include <cstdint>
#include <vector>

#include "ir/expr.h"

namespace fusec {

// Is the value, whatever is loaded, one of the dtype's (float16, bfloat16, int8)? Powers of two as scales of half-byte
// numbers are held to lie within the range of bfloat16.
bool is_exact_in(const ExprPool& pool, ExprId value, DType dtype);

// A conversion from integers to float32 that does not round is the integer.
ExprId without_conversion(const ExprPool& pool, ExprId value);

struct OperandWithScales {
  ExprId value = kNoExpr;
  std::vector<ExprId> scales;
  std::int64_t block = 0;  // so many steps of the depth, flattened, have the same scales; 0: all
};

// A float32 factor as one value times scales; all of it is the value where that cannot be.
OperandWithScales split_scales(const ExprPool& pool, ExprId operand, const std::vector<std::uint32_t>& k);

// So many steps of the depth, flattened, have the same value; 0: all.
std::int64_t scale_block_of(const ExprPool& pool, ExprId value, const std::vector<std::uint32_t>& k);

// The block for which two hold; 0 is the whole depth.
std::int64_t common_scale_block(std::int64_t a, std::int64_t b);

}  // namespace fusec
