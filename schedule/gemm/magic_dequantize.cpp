#include "schedule/gemm/magic_dequantize.h"

#include "ir/type.h"
#include "schedule/gemm/operand_scales.h"

namespace fusec {
namespace {

constexpr double kSubnormals = 1 << 24;  // float16 subnormals per 1.0

// Sets unit and offset for the dtype; 1 and 0 if conversion is as cheap. Returns false for unsupported dtypes.
bool place(MagicDequantize& quantized, DType multiplied) {
  const bool half = multiplied == DType::kFloat16;
  switch (quantized.dtype) {
    case DType::kInt4:
    case DType::kUInt4:
      quantized.unit = half ? kSubnormals : 1;
      quantized.offset = (quantized.dtype == DType::kInt4 ? 8 : 0) + (half ? 0 : 128);
      break;
    case DType::kInt8:
    case DType::kUInt8:
      if (!half) return true;  // bfloat16 has too few mantissa bits
      quantized.unit = kSubnormals;
      quantized.offset = quantized.dtype == DType::kInt8 ? 128 : 0;
      break;
    case DType::kFloat4E2M1FN:
      if (half) return true;                          // the upper byte is a number by itself
      quantized.unit = 0.125, quantized.offset = 22;  // 128 + 8 (6 + w)
      break;
    case DType::kFloat8E4M3FN:
      return true;
    case DType::kFloat8E5M2:
      return half;
    default:
      return false;
  }
  return true;
}

}  // namespace

std::optional<MagicDequantize> find_magic_dequantize(const ExprPool& pool, ExprId value, DType multiplied,
                                                     const std::vector<std::uint32_t>& k) {
  MagicDequantize found;
  value = without_conversion(pool, value);
  if (const ExprNode& n = pool[value]; n.op == ExprOp::kSub) {
    found.zero = without_conversion(pool, n.args[1]);
    if (is_float(pool[found.zero].type) || pool[found.zero].op != ExprOp::kLoad) return std::nullopt;
    found.block = scale_block_of(pool, found.zero, k);
    value = without_conversion(pool, n.args[0]);
  }
  const ExprNode& n = pool[value];
  if (n.op != ExprOp::kLoad || n.args[0] != kNoExpr || bits(n.dtype) > 8) return std::nullopt;
  if (found.zero != kNoExpr && is_float(n.dtype)) return std::nullopt;
  found.quantized = value;
  found.dtype = n.dtype;
  if (!place(found, multiplied)) return std::nullopt;
  return found;
}

}  // namespace fusec
