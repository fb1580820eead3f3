// Dequantization without arithmetic: the bits of a quantized value become the low bits of a 16-bit float.
//
//   w in int4, float16 bits  0x0000 | (w + 8):    w = bits * 2^24 - 8       a subnormal number, which mma keeps
//   w in int4, bfloat16 bits 0x4300 | (w + 8):    w = bits - 136            128 + 8 + w
//
//   sum_k x[k] (w[k] - z) s   =   s unit (sum_k x[k] bits[k])  -  s (offset + z) (sum_k x[k])
//
// Tensor cores also compute the sums of x, with a matrix of ones, once for all columns.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/expr.h"

namespace fusec {

struct MagicDequantize {
  ExprId quantized = kNoExpr;  // a load
  ExprId zero = kNoExpr;       // zero point of a block of K, an integer
  DType dtype = DType::kInt4;  // of the quantized values
  double unit = 1;
  int offset = 0;
  std::int64_t block = 0;  // length of flattened K with one zero point; 0: all of K

  bool needs_operand_sums() const { return offset != 0 || zero != kNoExpr; }
};

// `value`: an operand without its scales (schedule/gemm/operand_scales). `multiplied`: float16 or bfloat16.
std::optional<MagicDequantize> find_magic_dequantize(const ExprPool& pool, ExprId value, DType multiplied,
                                                     const std::vector<std::uint32_t>& k);

}  // namespace fusec
