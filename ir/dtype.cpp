#include "ir/dtype.h"

#include <array>

namespace fusec {
namespace {

constexpr std::array<DTypeInfo, 19> kDTypes{{
    {DType::kFloat64, "float64", 64, Category::kFloat, true, "F64"},
    {DType::kFloat32, "float32", 32, Category::kFloat, true, "F32"},
    {DType::kFloat16, "float16", 16, Category::kFloat, true, "F16"},
    {DType::kBFloat16, "bfloat16", 16, Category::kFloat, true, "BF16"},
    {DType::kFloat8E4M3FN, "float8_e4m3fn", 8, Category::kFloat, true, "F8_E4M3"},
    {DType::kFloat8E5M2, "float8_e5m2", 8, Category::kFloat, true, "F8_E5M2"},
    {DType::kFloat8E8M0FNU, "float8_e8m0fnu", 8, Category::kFloat, false, "F8_E8M0"},
    {DType::kFloat4E2M1FN, "float4_e2m1fn", 4, Category::kFloat, true, "F4"},
    {DType::kInt64, "int64", 64, Category::kInteger, true, "I64"},
    {DType::kInt32, "int32", 32, Category::kInteger, true, "I32"},
    {DType::kInt16, "int16", 16, Category::kInteger, true, "I16"},
    {DType::kInt8, "int8", 8, Category::kInteger, true, "I8"},
    {DType::kInt4, "int4", 4, Category::kInteger, true, "U8"},
    {DType::kUInt64, "uint64", 64, Category::kInteger, false, "U64"},
    {DType::kUInt32, "uint32", 32, Category::kInteger, false, "U32"},
    {DType::kUInt16, "uint16", 16, Category::kInteger, false, "U16"},
    {DType::kUInt8, "uint8", 8, Category::kInteger, false, "U8"},
    {DType::kUInt4, "uint4", 4, Category::kInteger, false, "U8"},
    {DType::kBool, "bool", 8, Category::kBool, false, "BOOL"},
}};

}  // namespace

std::span<const DTypeInfo> all_dtypes() {
  return kDTypes;
}

const DTypeInfo& info(DType dtype) {
  return kDTypes[static_cast<std::size_t>(dtype)];
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeInfo& row : kDTypes)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

}  // namespace fusec
