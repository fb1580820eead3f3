#include "runtime/emulator/numerics.h"

#include <algorithm>
#include <cfenv>

namespace fusec::emulator {
namespace {

// 2^exponent, for exponents of normal float64 numbers.
double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(std::clamp(exponent, -1022, 1023) + 1023) << 52);
}

int exponent_of(double value) {
  const int biased = static_cast<int>((std::bit_cast<std::uint64_t>(value) >> 52) & 0x7ff);
  return biased == 0 ? std::ilogb(value) : biased - 1023;
}

// `value` (finite, not zero) rounded to `digits` significant bits, fewer below 2^min_exponent.
double round_digits(double value, int digits, int min_exponent, Rounding rounding) {
  const int quantum = std::max(exponent_of(value), min_exponent) - (digits - 1);
  return round_integral(value * power_of_two(-quantum), rounding) * power_of_two(quantum);
}

// Whether a value beyond the largest finite one rounds to it instead of to infinity.
bool stays_finite(bool negative, Rounding rounding) {
  return rounding == Rounding::kZero || (rounding == Rounding::kDown && !negative) ||
         (rounding == Rounding::kUp && negative);
}

int host_mode(Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero:
      return FE_TOWARDZERO;
    case Rounding::kDown:
      return FE_DOWNWARD;
    case Rounding::kUp:
      return FE_UPWARD;
    default:
      return FE_TONEAREST;
  }
}

// Runs an operation under the host's rounding mode. Volatile keeps the compiler from moving it.
template <class Operation>
double under(Rounding rounding, Operation operation) {
  std::fesetround(host_mode(rounding));
  volatile double result = operation();
  std::fesetround(FE_TONEAREST);
  return result;
}

}  // namespace

double round_integral(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::kNearestEven:
      return std::nearbyint(value);
    case Rounding::kZero:
      return std::trunc(value);
    case Rounding::kDown:
      return std::floor(value);
    case Rounding::kUp:
      return std::ceil(value);
    case Rounding::kNearestAway:
      return std::round(value);
  }
  return value;
}

double decode_float(std::uint32_t bits, const FloatFormat& format) {
  const std::uint32_t mantissa_mask = (1u << format.mantissa_bits) - 1;
  const std::uint32_t exponent_mask = (1u << format.exponent_bits) - 1;
  const std::uint32_t mantissa = bits & mantissa_mask;
  const int exponent = static_cast<int>((bits >> format.mantissa_bits) & exponent_mask);
  const bool negative = ((bits >> (format.mantissa_bits + format.exponent_bits)) & 1) != 0;
  double value;
  if (format.infinity && exponent == static_cast<int>(exponent_mask)) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (!format.infinity && format.nan && exponent == static_cast<int>(exponent_mask) &&
             mantissa == mantissa_mask) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = mantissa * power_of_two(format.min_exponent() - format.mantissa_bits);
  } else {
    value = (mantissa + mantissa_mask + 1) * power_of_two(exponent - format.bias() - format.mantissa_bits);
  }
  return negative ? -value : value;
}

std::uint32_t encode_float(double value, const FloatFormat& format, Rounding rounding, bool saturate) {
  const bool negative = std::signbit(value);
  const std::uint32_t sign = negative ? 1u << (format.mantissa_bits + format.exponent_bits) : 0;
  if (value != value) {
    // In a format without NaN (e2m1, ...) this is the largest positive value.
    return format.nan_bits;
  }
  double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isfinite(value)) {
    magnitude = std::fabs(round_digits(value, format.mantissa_bits + 1, format.min_exponent(), rounding));
  }
  if (magnitude > format.largest) {
    if (saturate || (!format.infinity && !format.nan) || (std::isfinite(value) && stays_finite(negative, rounding))) {
      magnitude = format.largest;
    } else if (format.infinity) {
      return sign | (((1u << format.exponent_bits) - 1) << format.mantissa_bits);
    } else {
      return sign | format.nan_bits;
    }
  }
  if (magnitude == 0) return sign;
  const int exponent = std::max(exponent_of(magnitude), format.min_exponent());
  const auto digits = static_cast<std::uint32_t>(magnitude * power_of_two(format.mantissa_bits - exponent));  // exact
  // The hidden bit of normal numbers raises the exponent field from 0 to 1.
  return sign | (digits + (static_cast<std::uint32_t>(exponent - format.min_exponent()) << format.mantissa_bits));
}

double decode_ue8m0(std::uint8_t bits) {
  return bits == 0xff ? std::numeric_limits<double>::quiet_NaN() : power_of_two(static_cast<int>(bits) - 127);
}

std::uint8_t encode_ue8m0(double value, Rounding rounding, bool saturate) {
  if (value != value) return 0xff;
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return saturate ? 0xfe : 0xff;
  if (magnitude <= 0x1p-127) return 0;
  int exponent = exponent_of(magnitude);
  if (rounding == Rounding::kUp && magnitude > power_of_two(exponent)) ++exponent;
  if (exponent > 127) return saturate ? 0xfe : 0xff;
  return static_cast<std::uint8_t>(exponent + 127);
}

float round_to_float(double value, Rounding rounding) {
  if (value != value) return std::bit_cast<float>(std::uint32_t{0x7fffffff});
  if (rounding == Rounding::kNearestEven) return static_cast<float>(value);
  return std::bit_cast<float>(encode_float(value, kSingle, rounding));
}

double integer_to_double(std::uint64_t magnitude, bool negative, Rounding rounding) {
  const int excess = std::bit_width(magnitude) - 53;
  if (excess > 0) {
    const std::uint64_t low = magnitude & ((std::uint64_t{1} << excess) - 1);
    const std::uint64_t half = std::uint64_t{1} << (excess - 1);
    std::uint64_t high = magnitude >> excess;
    const bool away = rounding == Rounding::kNearestEven   ? low > half || (low == half && (high & 1) != 0)
                      : rounding == Rounding::kNearestAway ? low >= half
                                                           : low != 0 && !stays_finite(negative, rounding);
    high += away ? 1 : 0;
    const double value = static_cast<double>(high) * power_of_two(excess);
    return negative ? -value : value;
  }
  const double value = static_cast<double>(magnitude);
  return negative ? -value : value;
}

float integer_to_float(std::uint64_t magnitude, bool negative, Rounding rounding) {
  const int excess = std::bit_width(magnitude) - 53;
  if (excess > 0) {  // round to odd, so that the second rounding is the only one that counts
    const bool inexact = (magnitude & ((std::uint64_t{1} << excess) - 1)) != 0;
    magnitude = ((magnitude >> excess) | (inexact ? 1 : 0)) << excess;
  }
  const double value = static_cast<double>(magnitude);
  return round_to_float(negative ? -value : value, rounding);
}

double add_double(double a, double b, Rounding rounding) {
  if (rounding == Rounding::kNearestEven) return a + b;
  volatile double x = a, y = b;
  return under(rounding, [&] { return x + y; });
}

double multiply_double(double a, double b, Rounding rounding) {
  if (rounding == Rounding::kNearestEven) return a * b;
  volatile double x = a, y = b;
  return under(rounding, [&] { return x * y; });
}

double divide_double(double a, double b, Rounding rounding) {
  if (rounding == Rounding::kNearestEven) return a / b;
  volatile double x = a, y = b;
  return under(rounding, [&] { return x / y; });
}

double fma_double(double a, double b, double c, Rounding rounding) {
  if (rounding == Rounding::kNearestEven) return std::fma(a, b, c);
  volatile double x = a, y = b, z = c;
  return under(rounding, [&] { return std::fma(x, y, z); });
}

double square_root_double(double a, Rounding rounding) {
  if (rounding == Rounding::kNearestEven) return std::sqrt(a);
  volatile double x = a;
  return under(rounding, [&] { return std::sqrt(x); });
}

double divide_odd(double a, double b) {
  const double quotient = a / b;
  if (!std::isfinite(quotient) || quotient == 0) return quotient;
  // The sign of remainder / divisor tells on which side of the quotient the exact value is.
  const double remainder = std::fma(-quotient, b, a);
  return to_odd(quotient, b > 0 ? remainder : -remainder);
}

double square_root_odd(double a) {
  const double root = std::sqrt(a);
  if (!std::isfinite(root) || root == 0) return root;
  return to_odd(root, std::fma(-root, root, a));
}

std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // rounds to 65536 or more
  if (magnitude < 0x38800000u) {  // subnormal: the addition of 0.5 puts the rounded digits into the low mantissa bits
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1) - 0x38000000u;
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

}  // namespace fusec::emulator
