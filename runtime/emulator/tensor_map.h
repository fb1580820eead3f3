// The emulator's encoding of a tensor map (CUtensorMap), which describes the copies of cp.async.bulk.tensor. The
// driver's encoding is opaque; here the 128 bytes hold the fields of TensorMap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/emulator/ptx_types.h"

namespace fusec::emulator {

struct TensorMap {
  std::uint64_t address = 0;  // device address of the tensor
  std::uint32_t element_bytes = 1;
  std::uint32_t rank = 1;                  // 1 to 5
  std::uint32_t swizzle = 0;               // 0, 32, 64 or 128 bytes
  bool fill_nan = false;                   // out-of-bounds elements are NaN instead of 0
  std::array<std::uint64_t, 5> extents{};  // innermost first
  std::array<std::uint64_t, 5> strides{};  // bytes; strides[0] is the element's size
  std::array<std::uint32_t, 5> box{};      // extents of one copy, in elements
  std::array<std::uint32_t, 5> element_strides{1, 1, 1, 1, 1};
  Type type = Type::kNone;  // element type, needed only for reductions
};

inline constexpr std::size_t kTensorMapBytes = 128;

// The map as a kernel argument of kTensorMapBytes.
std::vector<std::byte> encode_tensor_map(const TensorMap& map);
// Which rule of cuTensorMapEncodeTiled a map breaks, without interleaving; "" for none. The driver refuses such a map,
// and a kernel that makes one itself has undefined behaviour.
std::string_view tensor_map_fault(const TensorMap& map);
// The fields that tensormap.replace sets. The map may be all zeros at first.
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
// Sets one field. `dimension` counts from the innermost; values are PTX's (a rank minus one; strides begin with
// dimension 1). Returns false if the map or the instruction has no such dimension or value.
bool replace_field(std::span<std::byte> map, TensorMapField field, std::uint32_t dimension, std::uint64_t value);
// Nothing if the bytes are not a tensor map.
std::optional<TensorMap> decode_tensor_map(std::span<const std::byte> bytes);

}  // namespace fusec::emulator
