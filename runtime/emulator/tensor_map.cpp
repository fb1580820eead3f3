#include "runtime/emulator/tensor_map.h"

#include <cstring>
#include <iterator>

namespace fusec::emulator {
namespace {

constexpr std::uint32_t kMagic = 0x70616d74;

// The 128 bytes of a map. Extents and strides have 40 bits, boxes and element strides 16, more than the driver allows.
struct Packed {
  std::uint32_t magic;
  std::uint8_t element_bytes, rank, swizzle, fill_nan;
  std::uint64_t address;
  std::uint32_t extents[5];
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
    packed.extents[i] = static_cast<std::uint32_t>(map.extents[i]);
    packed.strides[i] = map.strides[i];
    packed.box[i] = static_cast<std::uint16_t>(map.box[i]);
    packed.element_strides[i] = static_cast<std::uint8_t>(map.element_strides[i]);
  }
  packed.type = static_cast<std::uint8_t>(map.type);
  std::vector<std::byte> bytes(kTensorMapBytes);
  std::memcpy(bytes.data(), &packed, sizeof(packed));
  return bytes;
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
      packed.extents[dimension] = static_cast<std::uint32_t>(value);
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
