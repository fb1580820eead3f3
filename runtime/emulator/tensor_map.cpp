#include "runtime/emulator/tensor_map.h"

#include <cstring>

namespace fusec::emulator {
namespace {

constexpr std::uint32_t kMagic = 0x70616d74;

// Extents and strides are cut to 40 bits, boxes and element strides to 16: the driver's own limits are below.
struct Packed {
  std::uint32_t magic;
  std::uint8_t element_bytes, rank, swizzle, fill_nan;
  std::uint64_t address;
  std::uint32_t extents[5];
  std::uint64_t strides[5];
  std::uint16_t box[5];
  std::uint8_t element_strides[5];
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
  std::vector<std::byte> bytes(kTensorMapBytes);
  std::memcpy(bytes.data(), &packed, sizeof(packed));
  return bytes;
}

std::optional<TensorMap> decode_tensor_map(std::span<const std::byte> bytes) {
  Packed packed{};
  if (bytes.size() < sizeof(packed)) return std::nullopt;
  std::memcpy(&packed, bytes.data(), sizeof(packed));
  if (packed.magic != kMagic || packed.rank < 1 || packed.rank > 5 || packed.element_bytes == 0) return std::nullopt;
  TensorMap map{.address = packed.address,
                .element_bytes = packed.element_bytes,
                .rank = packed.rank,
                .swizzle = packed.swizzle,
                .fill_nan = packed.fill_nan != 0};
  for (std::size_t i = 0; i < 5; ++i) {
    map.extents[i] = packed.extents[i];
    map.strides[i] = packed.strides[i];
    map.box[i] = packed.box[i];
    map.element_strides[i] = packed.element_strides[i] == 0 ? 1 : packed.element_strides[i];
  }
  return map;
}

}  // namespace fusec::emulator
