// Codes of few bits that are multiplied as the last bits of 16-bit floats, which takes no arithmetic to make them:
//
//   w in int4, float16's bits 0x0000 | (w + 8):    w = bits * 2^24 - 8       a subnormal number, which products keep
//   w in int4, bfloat16's bits 0x4300 | (w + 8):   w = bits - 136            128 + 8 + w
//
//   sum_k x[k] (w[k] - z) s   =   s unit (sum_k x[k] bits[k])  -  s (offset + z) (sum_k x[k])
//
// The sums of x come from tensor cores as well, by a matrix of ones, once for all columns.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/expr.h"

namespace fusec {

struct MagicDequantize {
  ExprId quantized = kNoExpr;  // a load
  ExprId zero = kNoExpr;       // an integer, of a block of the depth
  DType dtype = DType::kInt4;  // of the codes
  double unit = 1;
  int offset = 0;
  std::int64_t block = 0;  // so many steps of the depth, flattened, have the same zero point; 0: all

  bool needs_operand_sums() const { return offset != 0 || zero != kNoExpr; }
};

// What stands in a product's factor beside its scales (schedule/gemm/operand_scales), to be multiplied in float16 or
// bfloat16.
std::optional<MagicDequantize> find_magic_dequantize(const ExprPool& pool, ExprId value, DType multiplied,
                                                     const std::vector<std::uint32_t>& k);

}  // namespace fusec
