#include "runtime/emulator/tensor_map.h"

#include <cstring>
#include <iterator>

namespace fusec::emulator {
namespace {

constexpr std::uint32_t kMagic = 0x70616d74;

// The 128 bytes of a map. Each field holds more than the driver allows, so that tensor_map_fault sees it.
struct Packed {
  std::uint32_t magic;
  std::uint8_t element_bytes, rank, swizzle, fill_nan;
  std::uint64_t address;
  std::uint64_t extents[5];
  std::uint64_t strides[5];
  std::uint16_t box[5];
  std::uint8_t element_strides[5];
  std::uint8_t type;
};
static_assert(sizeof(Packed) <= kTensorMapBytes);

}  // namespace

std::vector<std::byte> encode_tensor_map(const TensorMap& map) {
  Packed packed{};
  packed.magic = kMagic;
  packed.element_bytes = static_cast<std::uint8_t>(map.element_bytes);
  packed.rank = static_cast<std::uint8_t>(map.rank);
  packed.swizzle = static_cast<std::uint8_t>(map.swizzle);
  packed.fill_nan = map.fill_nan ? 1 : 0;
  packed.address = map.address;
  for (std::size_t i = 0; i < 5; ++i) {
    packed.extents[i] = map.extents[i];
    packed.strides[i] = map.strides[i];
    packed.box[i] = static_cast<std::uint16_t>(map.box[i]);
    packed.element_strides[i] = static_cast<std::uint8_t>(map.element_strides[i]);
  }
  packed.type = static_cast<std::uint8_t>(map.type);
  std::vector<std::byte> bytes(kTensorMapBytes);
  std::memcpy(bytes.data(), &packed, sizeof(packed));
  return bytes;
}

std::string_view tensor_map_fault(const TensorMap& map) {
  if (map.rank < 1 || map.rank > 5) return "a rank that is not 1 to 5";
  if (map.address == 0 || map.address % 16 != 0) return "an address that is no multiple of 16 bytes";
  for (std::uint32_t d = 0; d < map.rank; ++d) {
    if (map.extents[d] < 1 || map.extents[d] > std::uint64_t{1} << 32) return "an extent that is not 1 to 2^32";
    if (map.box[d] < 1 || map.box[d] > 256) return "an extent of a box that is not 1 to 256";
    if (map.element_strides[d] < 1 || map.element_strides[d] > 8) return "an element stride that is not 1 to 8";
    if (d > 0 && map.strides[d] % 16 != 0) return "a stride that is no multiple of 16 bytes";
    if (d > 0 && map.strides[d] >= std::uint64_t{1} << 40) return "a stride of 2^40 bytes or more";
  }
  const std::uint32_t line = map.box[0] * map.element_bytes;
  if (line % 16 != 0) return "boxes whose rows are no multiple of 16 bytes";
  if (map.swizzle != 0 && line > map.swizzle) return "boxes whose rows are wider than the swizzle";
  return "";
}

bool replace_field(std::span<std::byte> map, TensorMapField field, std::uint32_t dimension, std::uint64_t value) {
  // In the order of the ISA's table of elemtype values.
  constexpr Type kTypes[] = {Type::kU8,  Type::kU16, Type::kU32, Type::kS32,  Type::kU64,  Type::kS64, Type::kF16,
                             Type::kF32, Type::kF32, Type::kF64, Type::kBF16, Type::kTF32, Type::kTF32};
  constexpr std::uint8_t kSwizzles[] = {0, 32, 64, 128};
  Packed packed{};
  if (map.size() < sizeof(packed) || dimension >= 5) return false;
  std::memcpy(&packed, map.data(), sizeof(packed));
  packed.magic = kMagic;
  switch (field) {
    case TensorMapField::kGlobalAddress:
      packed.address = value;
      break;
    case TensorMapField::kRank:
      if (value > 4) return false;
      packed.rank = static_cast<std::uint8_t>(value + 1);
      break;
    case TensorMapField::kBoxExtent:
      packed.box[dimension] = static_cast<std::uint16_t>(value);
      break;
    case TensorMapField::kExtent:
      packed.extents[dimension] = value;
      break;
    case TensorMapField::kStride:
      if (dimension == 4) return false;
      packed.strides[dimension + 1] = value;
      break;
    case TensorMapField::kElementStride:
      packed.element_strides[dimension] = static_cast<std::uint8_t>(value);
      break;
    case TensorMapField::kElementType:
      if (value >= std::size(kTypes)) return false;
      packed.type = static_cast<std::uint8_t>(kTypes[value]);
      packed.element_bytes = static_cast<std::uint8_t>(bytes(kTypes[value]));
      packed.strides[0] = packed.element_bytes;
      break;
    case TensorMapField::kInterleave:
      if (value != 0) return false;
      break;
    case TensorMapField::kSwizzle:
      if (value >= std::size(kSwizzles)) return false;
      packed.swizzle = kSwizzles[value];
      break;
    case TensorMapField::kFill:
      packed.fill_nan = value != 0 ? 1 : 0;
      break;
  }
  std::memcpy(map.data(), &packed, sizeof(packed));
  return true;
}

std::optional<TensorMap> decode_tensor_map(std::span<const std::byte> bytes) {
  Packed packed{};
  if (bytes.size() < sizeof(packed)) return std::nullopt;
  std::memcpy(&packed, bytes.data(), sizeof(packed));
  if (packed.magic != kMagic || packed.rank < 1 || packed.rank > 5 || packed.element_bytes == 0) return std::nullopt;
  TensorMap map{
      .address = packed.address,
      .element_bytes = packed.element_bytes,
      .rank = packed.rank,
      .swizzle = packed.swizzle,
      .fill_nan = packed.fill_nan != 0,
      .type = packed.type <= static_cast<std::uint8_t>(Type::kUE8M0x2) ? static_cast<Type>(packed.type) : Type::kNone};
  for (std::size_t i = 0; i < 5; ++i) {
    map.extents[i] = packed.extents[i];
    map.strides[i] = packed.strides[i];
    map.box[i] = packed.box[i];
    map.element_strides[i] = packed.element_strides[i] == 0 ? 1 : packed.element_strides[i];
  }
  return map;
}

}  // namespace fusec::emulator
