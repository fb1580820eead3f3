// The shared-memory swizzle of tensor maps and wgmma: permutes 16-byte chunks within rows of the swizzle's width.
#pragma once

#include <cstdint>

namespace fusec::emulator {

// `width`: 32, 64 or 128 bytes; any other value means no swizzle.
inline std::uint64_t swizzled(std::uint64_t address, std::uint32_t width) {
  switch (width) {
    case 32:
      return address ^ ((address >> 7 & 1) << 4);
    case 64:
      return address ^ ((address >> 7 & 3) << 4);
    case 128:
      return address ^ ((address >> 7 & 7) << 4);
    default:
      return address;
  }
}

}  // namespace fusec::emulator
