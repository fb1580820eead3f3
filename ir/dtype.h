// Element types of tensors: their names (as in ml_dtypes), sizes and categories.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace fusec {

enum class DType : std::uint8_t {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kFloat8E4M3FN,
  kFloat8E5M2,
  kFloat8E8M0FNU,
  kFloat4E2M1FN,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kInt4,
  kUInt64,
  kUInt32,
  kUInt16,
  kUInt8,
  kUInt4,
  kBool,
};

// PyTorch's promotion categories, in order.
enum class Category : std::uint8_t { kBool, kInteger, kFloat };

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // "bfloat16"
  int bits;               // 4, 8, 16, 32 or 64
  Category category;
  bool is_signed;
  std::string_view safetensors;  // name in a safetensors header: "BF16"; 4-bit integers are stored as "U8"
};

std::span<const DTypeInfo> all_dtypes();  // in enum order
const DTypeInfo& info(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);

inline std::string_view name(DType dtype) {
  return info(dtype).name;
}
inline int bits(DType dtype) {
  return info(dtype).bits;
}
inline bool is_float(DType dtype) {
  return info(dtype).category == Category::kFloat;
}
inline bool is_integer(DType dtype) {
  return info(dtype).category == Category::kInteger;
}

// Bytes of `elements` packed values (two 4-bit values to a byte).
inline std::int64_t packed_bytes(DType dtype, std::int64_t elements) {
  return (elements * bits(dtype) + 7) / 8;
}

}  // namespace fusec
