// Bit patterns of the floating-point dtypes: exact values of stored bits, and numbers rounded to the nearest stored
// value (ties to even). The reference device, the reader of constants and constant folding all round here.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace fusec {

// What a number beyond the greatest finite value becomes.
enum class Overflow : std::uint8_t {
  kNonFinite,  // infinity where the format has one, else NaN; float4_e2m1fn has neither and saturates: PyTorch's casts
  kSaturate,   // the greatest finite value of its sign, infinities too: quantization
};

// The value of a stored float: the low bits(dtype) bits of `stored`.
double decode_float(DType dtype, std::uint64_t stored);

// The bits of the stored value nearest to `value`. float8_e8m0fnu holds only powers of two: the sign is dropped, the
// middle between two powers rounds up, and zero becomes the least power.
std::uint64_t encode_float(DType dtype, double value, Overflow overflow = Overflow::kNonFinite);

// The value of the dtype nearest to `value`.
double round_to_float(DType dtype, double value, Overflow overflow = Overflow::kNonFinite);

// The greatest finite value.
double greatest_finite(DType dtype);

// Least and greatest value of an integer dtype or bool.
std::int64_t least_integer(DType dtype);
std::uint64_t greatest_integer(DType dtype);

// The low bits of an integer as the dtype reads them: int8 of 200 is -56, uint4 of -1 is 15; bool is (v != 0).
std::int64_t wrap_integer(DType dtype, std::int64_t value);

// A float truncated to an integer dtype. Values beyond its range become the nearest end and NaN becomes 0 (PyTorch
// leaves both unspecified).
std::int64_t truncate_to_integer(DType dtype, double value);

}  // namespace fusec
