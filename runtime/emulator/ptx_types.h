// PTX's fundamental types and state spaces.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fusec::emulator {

enum class Space : std::uint8_t { kGeneric, kGlobal, kShared, kSharedCluster, kLocal, kParam, kConst };

enum class Type : std::uint8_t {
  kNone,
  kPred,
  kB1,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU4,
  kU8,
  kU16,
  kU32,
  kU64,
  kU16x2,
  kS4,
  kS8,
  kS16,
  kS32,
  kS64,
  kS16x2,
  kF16,
  kF16x2,
  kBF16,
  kBF16x2,
  kTF32,
  kF32,
  kF32x2,
  kF64,
  kE4M3,
  kE5M2,
  kE2M1,
  kE2M3,
  kE3M2,
  kUE8M0,
  kE4M3x2,
  kE5M2x2,
  kE2M1x2,
  kE2M3x2,
  kE3M2x2,
  kUE8M0x2,
};

// Bits of one value in memory or a register (1 for .pred).
int bits(Type type);
inline int bytes(Type type) {
  return (bits(type) + 7) / 8;
}
bool is_signed(Type type);         // .s8 ... .s64, .s4
bool is_float(Type type);          // any floating-point interpretation
bool is_integer(Type type);        // .u and .s and .b types of 8 to 64 bits
std::string_view name(Type type);  // "f32", without the dot
std::optional<Type> parse_type(std::string_view name);
std::string_view name(Space space);

}  // namespace fusec::emulator
