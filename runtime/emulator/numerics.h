// PTX arithmetic: the small float formats, all rounding modes, canonical NaNs, flushing of subnormals, saturation. All
// functions are pure.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace fusec::emulator {

enum class Rounding : std::uint8_t { kNearestEven, kZero, kDown, kUp, kNearestAway };

// A binary floating-point format of at most 32 bits.
struct FloatFormat {
  int exponent_bits, mantissa_bits;
  bool infinity;  // if false, overflow gives NaN, or the largest finite value without NaN
  bool nan;
  double largest;  // largest finite value
  std::uint32_t nan_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int min_exponent() const { return 1 - bias(); }  // smallest exponent of normal numbers
};

inline constexpr FloatFormat kHalf{5, 10, true, true, 65504.0, 0x7fff};
inline constexpr FloatFormat kBFloat{8, 7, true, true, 0x1.fep127, 0x7fff};
inline constexpr FloatFormat kTensor32{8, 10, true, true, 0x1.ffcp127, 0x3ffff};
inline constexpr FloatFormat kSingle{8, 23, true, true, 0x1.fffffep127, 0x7fffffff};
inline constexpr FloatFormat kE4M3Format{4, 3, false, true, 448.0, 0x7f};
inline constexpr FloatFormat kE5M2Format{5, 2, true, true, 57344.0, 0x7f};
inline constexpr FloatFormat kE2M1Format{2, 1, false, false, 6.0, 0x7};
inline constexpr FloatFormat kE2M3Format{2, 3, false, false, 7.5, 0x1f};
inline constexpr FloatFormat kE3M2Format{3, 2, false, false, 28.0, 0x1f};

// The exact value of `bits`.
double decode_float(std::uint32_t bits, const FloatFormat& format);
// `value` rounded to the format. `saturate`: overflow and infinities give the largest finite value of that sign.
std::uint32_t encode_float(double value, const FloatFormat& format, Rounding rounding, bool saturate = false);

// ue8m0: a power of two, 2^(bits - 127); 0xff is NaN.
double decode_ue8m0(std::uint8_t bits);
std::uint8_t encode_ue8m0(double value, Rounding rounding, bool saturate);

// Rounds to an integral value.
double round_integral(double value, Rounding rounding);
// float64 to float32. The result is correctly rounded if `value` is exact or rounded to odd.
float round_to_float(double value, Rounding rounding);
double integer_to_double(std::uint64_t magnitude, bool negative, Rounding rounding);
float integer_to_float(std::uint64_t magnitude, bool negative, Rounding rounding);

// float64 operations with any rounding mode; kNearestEven is the host's operation.
double add_double(double a, double b, Rounding rounding);
double multiply_double(double a, double b, Rounding rounding);
double divide_double(double a, double b, Rounding rounding);
double fma_double(double a, double b, double c, Rounding rounding);
double square_root_double(double a, Rounding rounding);

// Rounding to odd: the exact result if float64 holds it, else the neighbour with last bit 1. Rounding the result again,
// to a format of at most 51 bits, gives the correctly rounded result of the exact operation.
inline double to_odd(double rounded, double error) {
  if (!(error == error) || error == 0) return rounded;
  std::uint64_t bits = std::bit_cast<std::uint64_t>(rounded);
  if ((bits & 1) != 0) return rounded;
  bits = (error > 0) == (rounded > 0) ? bits | 1 : bits - 1;
  return std::bit_cast<double>(bits);
}
inline double add_odd(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  return to_odd(sum, (a - (sum - part)) + (b - part));
}
double divide_odd(double a, double b);
double square_root_odd(double a);

inline float canonical(float value) {
  return value == value ? value : std::bit_cast<float>(std::uint32_t{0x7fffffff});
}
inline float flush(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : value;
}
template <class T>
T saturate_unit(T value) {  // NaN gives +0
  return value > T(0) ? (value < T(1) ? value : T(1)) : T(0);
}

inline float fma_single(float a, float b, float c) {
  return static_cast<float>(add_odd(static_cast<double>(a) * static_cast<double>(b), static_cast<double>(c)));
}

// Has no branches, so that loops over it vectorize.
inline float half_to_float(std::uint16_t bits) {
  constexpr std::int32_t kInfinity = 0x7c00 << 13;
  const std::int32_t magnitude = (bits & 0x7fff) << 13;
  const auto scaled = std::bit_cast<std::int32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const std::int32_t special = -static_cast<std::int32_t>(magnitude >= kInfinity) & 0x7f800000;
  const std::int32_t nan = -static_cast<std::int32_t>(magnitude > kInfinity);
  const std::int32_t sign = std::bit_cast<std::int32_t>(static_cast<std::uint32_t>(bits & 0x8000) << 16) & ~nan;
  return std::bit_cast<float>(scaled | special | sign | (nan & 0x7fffffff));
}
std::uint16_t float_to_half(float value);  // to nearest even
inline float bfloat_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
inline std::uint16_t float_to_bfloat(float value) {
  if (value != value) return 0x7fff;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

}  // namespace fusec::emulator
