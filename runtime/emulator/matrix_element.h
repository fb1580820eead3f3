// The value of one element of a matrix fragment, from its bits.
#pragma once

#include <bit>
#include <cstdint>

#include "runtime/emulator/numerics.h"
#include "runtime/emulator/ptx_types.h"

namespace fusec::emulator {

template <class T>
T element_value(Type type, std::uint64_t raw) {
  switch (type) {
    case Type::kF64:
      return static_cast<T>(std::bit_cast<double>(raw));
    case Type::kF16:
      return static_cast<T>(half_to_float(static_cast<std::uint16_t>(raw)));
    case Type::kBF16:
      return static_cast<T>(bfloat_to_float(static_cast<std::uint16_t>(raw)));
    // The hardware reads the upper 19 bits of a tf32 operand.
    case Type::kTF32:
      return static_cast<T>(std::bit_cast<float>(static_cast<std::uint32_t>(raw) & 0xffffe000u));
    case Type::kE4M3:
      return static_cast<T>(decode_float(static_cast<std::uint32_t>(raw), kE4M3Format));
    case Type::kE5M2:
      return static_cast<T>(decode_float(static_cast<std::uint32_t>(raw), kE5M2Format));
    case Type::kS8:
      return static_cast<T>(static_cast<std::int8_t>(raw));
    case Type::kS4:
      return static_cast<T>(static_cast<std::int8_t>(raw << 4) >> 4);
    default:
      return static_cast<T>(raw);
  }
}

}  // namespace fusec::emulator
