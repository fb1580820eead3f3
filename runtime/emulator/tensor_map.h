// The emulator's form of a tensor map (CUtensorMap): what cp.async.bulk.tensor copies by. The hardware's own encoding
// is opaque and made by the driver; here the 128 bytes hold these fields.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/emulator/ptx_types.h"

namespace fusec::emulator {

struct TensorMap {
  std::uint64_t address = 0;  // device address of the tensor
  std::uint32_t element_bytes = 1;
  std::uint32_t rank = 1;                  // 1 to 5
  std::uint32_t swizzle = 0;               // 0, 32, 64 or 128 bytes
  bool fill_nan = false;                   // out-of-bounds elements: NaN instead of 0
  std::array<std::uint64_t, 5> extents{};  // innermost first
  std::array<std::uint64_t, 5> strides{};  // bytes; strides[0] is the element's size
  std::array<std::uint32_t, 5> box{};      // elements of a copy
  std::array<std::uint32_t, 5> element_strides{1, 1, 1, 1, 1};
  Type type = Type::kNone;  // of the elements; only reductions need it
};

inline constexpr std::size_t kTensorMapBytes = 128;

// A kernel argument of kTensorMapBytes.
std::vector<std::byte> encode_tensor_map(const TensorMap& map);
// The fields that tensormap.replace sets, one at a time, in a map that may begin as zeros.
enum class TensorMapField : std::uint8_t {
  kGlobalAddress,
  kRank,
  kBoxExtent,
  kExtent,
  kStride,
  kElementStride,
  kElementType,
  kInterleave,
  kSwizzle,
  kFill,
};
// `dimension` counts from the innermost; values are PTX's (a rank is given less one, strides begin with dimension 1).
// False where the map or the instruction has no such dimension or value.
bool replace_field(std::span<std::byte> map, TensorMapField field, std::uint32_t dimension, std::uint64_t value);
// None where the bytes are no tensor map.
std::optional<TensorMap> decode_tensor_map(std::span<const std::byte> bytes);

}  // namespace fusec::emulator
