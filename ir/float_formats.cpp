#include "ir/float_formats.h"

#include <bit>
#include <cmath>
#include <limits>

#include "ir/error.h"

namespace fusec {
namespace {

// A format of at most 16 bits: sign, exponent, mantissa, with subnormals if the exponent field is 0.
struct SmallFormat {
  int mantissa_bits;
  int exponent_bias;
  std::uint32_t sign;        // the sign's bit
  std::uint32_t max_finite;  // bits of the greatest finite value
  std::uint32_t infinity;    // bits of infinity; of NaN without infinity; of max_finite without both
  std::uint32_t nan;
};

const SmallFormat& small_format(DType dtype) {
  static constexpr SmallFormat kHalf{10, 15, 0x8000, 0x7BFF, 0x7C00, 0x7E00};
  static constexpr SmallFormat kBrain{7, 127, 0x8000, 0x7F7F, 0x7F80, 0x7FC0};
  static constexpr SmallFormat kE4M3{3, 7, 0x80, 0x7E, 0x7F, 0x7F};
  static constexpr SmallFormat kE5M2{2, 15, 0x80, 0x7B, 0x7C, 0x7F};
  static constexpr SmallFormat kE2M1{1, 1, 0x8, 0x7, 0x7, 0x7};
  switch (dtype) {
    case DType::kFloat16:
      return kHalf;
    case DType::kBFloat16:
      return kBrain;
    case DType::kFloat8E4M3FN:
      return kE4M3;
    case DType::kFloat8E5M2:
      return kE5M2;
    case DType::kFloat4E2M1FN:
      return kE2M1;
    default:
      throw InternalError("no small float format: " + std::string(name(dtype)));
  }
}

double decode_small(const SmallFormat& format, std::uint32_t bits) {
  const bool negative = (bits & format.sign) != 0;
  const std::uint32_t magnitude = bits & (format.sign - 1);
  double value;
  if (magnitude > format.max_finite) {
    value = magnitude == format.infinity && format.infinity != format.nan ? std::numeric_limits<double>::infinity()
                                                                          : std::numeric_limits<double>::quiet_NaN();
  } else {
    const auto field = static_cast<int>(magnitude >> format.mantissa_bits);
    const std::uint32_t implicit = 1u << format.mantissa_bits;
    const std::uint32_t mantissa = (magnitude & (implicit - 1)) | (field != 0 ? implicit : 0);
    value = std::ldexp(mantissa, (field != 0 ? field : 1) - format.exponent_bias - format.mantissa_bits);
  }
  return negative ? -value : value;
}

std::uint32_t encode_small(const SmallFormat& format, double value, Overflow overflow) {
  const std::uint32_t sign = std::signbit(value) ? format.sign : 0;
  // Without NaN in the format, NaN becomes the greatest value, as in PTX's cvt.satfinite.
  if (std::isnan(value)) return format.nan == format.max_finite ? format.nan : sign | format.nan;
  const std::uint32_t beyond = overflow == Overflow::kSaturate ? format.max_finite : format.infinity;
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return sign | beyond;
  if (magnitude == 0) return sign;
  int exponent;
  std::frexp(magnitude, &exponent);
  // value = 1.x * 2^exponent, or 0.x * 2^least for subnormals. `units` below counts units in the last place; its
  // implicit bit and its carry both add to the exponent field.
  const int least = 1 - format.exponent_bias;
  exponent = std::max(exponent - 1, least);
  if (exponent > 4 * format.exponent_bias + 16) return sign | beyond;
  const double units = std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent));
  const std::uint32_t bits =
      (static_cast<std::uint32_t>(exponent - least) << format.mantissa_bits) + static_cast<std::uint32_t>(units);
  return sign | (bits > format.max_finite ? beyond : bits);
}

double decode_e8m0(std::uint32_t bits) {
  return bits == 0xFF ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, static_cast<int>(bits) - 127);
}

std::uint32_t encode_e8m0(double value, Overflow overflow) {
  if (std::isnan(value)) return 0xFF;
  const double magnitude = std::fabs(value);
  if (magnitude <= std::ldexp(1.0, -127)) return 0;
  int exponent = 300;
  double fraction = 0.5;
  if (!std::isinf(magnitude)) fraction = std::frexp(magnitude, &exponent);
  const int power = exponent - 1 + (fraction >= 0.75 ? 1 : 0);
  if (power > 127) return overflow == Overflow::kSaturate ? 0xFE : 0xFF;
  return static_cast<std::uint32_t>(power + 127);
}

float to_float32(double value, Overflow overflow) {
  const auto narrow = static_cast<float>(value);
  if (overflow == Overflow::kSaturate && std::isinf(narrow))
    return std::copysign(std::numeric_limits<float>::max(), narrow);
  return narrow;
}

}  // namespace

double decode_float(DType dtype, std::uint64_t stored) {
  switch (dtype) {
    case DType::kFloat64:
      return std::bit_cast<double>(stored);
    case DType::kFloat32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(stored));
    case DType::kFloat8E8M0FNU:
      return decode_e8m0(static_cast<std::uint32_t>(stored & 0xFF));
    default: {
      const std::uint64_t mask = (std::uint64_t{1} << bits(dtype)) - 1;
      return decode_small(small_format(dtype), static_cast<std::uint32_t>(stored & mask));
    }
  }
}

std::uint64_t encode_float(DType dtype, double value, Overflow overflow) {
  switch (dtype) {
    case DType::kFloat64:
      if (overflow == Overflow::kSaturate && std::isinf(value))
        value = std::copysign(std::numeric_limits<double>::max(), value);
      return std::bit_cast<std::uint64_t>(value);
    case DType::kFloat32:
      return std::bit_cast<std::uint32_t>(to_float32(value, overflow));
    case DType::kFloat8E8M0FNU:
      return encode_e8m0(value, overflow);
    default:
      return encode_small(small_format(dtype), value, overflow);
  }
}

double round_to_float(DType dtype, double value, Overflow overflow) {
  return decode_float(dtype, encode_float(dtype, value, overflow));
}

double greatest_finite(DType dtype) {
  return round_to_float(dtype, std::numeric_limits<double>::infinity(), Overflow::kSaturate);
}

std::int64_t least_integer(DType dtype) {
  if (dtype == DType::kBool || !info(dtype).is_signed) return 0;
  return bits(dtype) == 64 ? std::numeric_limits<std::int64_t>::min() : -(std::int64_t{1} << (bits(dtype) - 1));
}

std::uint64_t greatest_integer(DType dtype) {
  if (dtype == DType::kBool) return 1;
  const int value_bits = bits(dtype) - (info(dtype).is_signed ? 1 : 0);
  return value_bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << value_bits) - 1;
}

std::int64_t wrap_integer(DType dtype, std::int64_t value) {
  if (dtype == DType::kBool) return value != 0;
  const int width = bits(dtype);
  if (width == 64) return value;
  const auto low = static_cast<std::uint64_t>(value) << (64 - width);
  return info(dtype).is_signed ? static_cast<std::int64_t>(low) >> (64 - width)
                               : static_cast<std::int64_t>(low >> (64 - width));
}

std::int64_t truncate_to_integer(DType dtype, double value) {
  if (dtype == DType::kBool) return value != 0;
  if (std::isnan(value)) return 0;
  const double whole = std::trunc(value);
  const auto greatest = static_cast<double>(greatest_integer(dtype));
  if (whole >= greatest) return static_cast<std::int64_t>(greatest_integer(dtype));
  if (whole <= static_cast<double>(least_integer(dtype))) return least_integer(dtype);
  return whole < 0 ? static_cast<std::int64_t>(whole) : static_cast<std::int64_t>(static_cast<std::uint64_t>(whole));
}

}  // namespace fusec
