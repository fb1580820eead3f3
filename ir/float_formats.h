// Bit patterns of the floating-point dtypes: exact values of stored bits, and numbers rounded to the nearest stored
// value (ties to even). The reference device, the reader of constants and constant folding all round here.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace fusec {

// What a finite number beyond the greatest finite value becomes.
enum class Overflow : std::uint8_t {
  kNonFinite,  // infinity where the format has one, else NaN; float4_e2m1fn has neither and saturates: PyTorch's casts
  kSaturate,   // the greatest finite value of its sign, infinities too: quantization
};

// The value of the low bits(dtype) bits; `dtype` is a float.
double decode_float(DType dtype, std::uint64_t stored);

// The bits of the stored value nearest to `value`. float8_e8m0fnu has powers of two alone: the sign is dropped, the
// middle between two powers goes up, and zero is its least value.
std::uint64_t encode_float(DType dtype, double value, Overflow overflow = Overflow::kNonFinite);

// `value` on the dtype's grid.
double round_to_float(DType dtype, double value, Overflow overflow = Overflow::kNonFinite);

// The greatest finite value.
double greatest_finite(DType dtype);

// Integer dtypes (and bool): least and greatest value; those of uint64 are 0 and 2^64-1 as bits.
std::int64_t least_integer(DType dtype);
std::uint64_t greatest_integer(DType dtype);

// The low bits of an integer as the dtype reads them: int8 of 200 is -56, uint4 of -1 is 15; bool is (v != 0).
std::int64_t wrap_integer(DType dtype, std::int64_t value);

// A float truncated to an integer dtype; beyond its range the nearest end, NaN is 0 (PyTorch leaves both unspecified).
std::int64_t truncate_to_integer(DType dtype, double value);

}  // namespace fusec
