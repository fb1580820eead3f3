// Number formats that CUDA C++ has no built-in type for: conversions between their bits and float or int.

//@ part bf16
using bf16 = unsigned short;  // storage only; arithmetic is float
__device__ __forceinline__ float from_bf16(unsigned bits) { return __uint_as_float(bits << 16); }
__device__ __forceinline__ bf16 to_bf16(float x) {
  bf16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

//@ part single_bf16
// Converts a bfloat16 that was loaded as 16 bits: one instruction, where widening and shifting are two.
__device__ __forceinline__ float from_single_bf16(unsigned short bits) {
  float x;
  asm("mov.b32 %0, {%1, %2};" : "=f"(x) : "h"((unsigned short)0), "h"(bits));
  return x;
}

//@ part round_to_bf16
__device__ __forceinline__ float round_to_bf16(float x) {  // converts a pair: a single conversion uses a slow pipe
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(x), "f"(0.0f));
  return __uint_as_float(bits);
}

//@ part fp16
using fp16 = unsigned short;  // storage only; arithmetic is float
__device__ __forceinline__ float from_fp16(unsigned bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((unsigned short)bits));
  return x;
}
__device__ __forceinline__ fp16 to_fp16(float x) {
  fp16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

//@ part small_float
// The bits of |x| in a float format with kMantissa bits of mantissa and exponent bias kBias, rounded to nearest even.
// x is finite. The result may exceed the format's greatest value; the caller checks that.
template <int kMantissa, int kBias>
__device__ __forceinline__ unsigned narrow_magnitude(float x) {
  const unsigned magnitude = __float_as_uint(x) & 0x7fffffffu;
  if ((int)(magnitude >> 23) - 127 < 1 - kBias) {  // a subnormal result counts units in the last place
    const float unit = __uint_as_float((unsigned)(127 + kMantissa - 1 + kBias) << 23);
    return (unsigned)__float2int_rn(__uint_as_float(magnitude) * unit);
  }
  constexpr int kShift = 23 - kMantissa;
  const unsigned rounded = magnitude + ((1u << (kShift - 1)) - 1u) + ((magnitude >> kShift) & 1u);
  return (rounded >> kShift) - ((unsigned)(127 - kBias) << kMantissa);
}

//@ part fp8_e4m3 : small_float
using fp8_e4m3 = unsigned char;
__device__ __forceinline__ float from_fp8_e4m3(unsigned bits) {
  float x;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  asm("{\n.reg .b32 pair;\n.reg .b16 low, high;\ncvt.rn.f16x2.e4m3x2 pair, %1;\nmov.b32 {low, high}, pair;\n"
      "cvt.f32.f16 %0, low;\n}"
      : "=f"(x)
      : "h"((unsigned short)bits));
#else  // the shift copies the sign; NaN comes out as 480
  x = __uint_as_float((unsigned)((int)(bits << 24) >> 4) & 0x87f00000u) * __uint_as_float((127u + 120u) << 23);
  if (fabsf(x) == 480.0f) x = __uint_as_float(0x7fc00000u);
#endif
  return x;
}
__device__ __forceinline__ fp8_e4m3 to_fp8_e4m3(float x) {  // NaN if the result would exceed 448
  const unsigned sign = (__float_as_uint(x) >> 24) & 0x80u;
  if (!(fabsf(x) <= 464.0f)) return (fp8_e4m3)(sign | 0x7fu);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return (fp8_e4m3)pair;
#else
  return (fp8_e4m3)(sign | narrow_magnitude<3, 7>(x));
#endif
}

//@ part fp8_e5m2 : small_float
using fp8_e5m2 = unsigned char;
__device__ __forceinline__ float from_fp8_e5m2(unsigned bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((unsigned short)(bits << 8)));
  return x;
}
__device__ __forceinline__ fp8_e5m2 to_fp8_e5m2(float x) {  // infinity if the result would exceed 57344
  const unsigned sign = (__float_as_uint(x) >> 24) & 0x80u;
  if (x != x) return (fp8_e5m2)(sign | 0x7fu);
  if (fabsf(x) >= 61440.0f) return (fp8_e5m2)(sign | 0x7cu);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return (fp8_e5m2)pair;
#else
  return (fp8_e5m2)(sign | narrow_magnitude<2, 15>(x));
#endif
}

//@ part e8m0
using e8m0 = unsigned char;  // a power of two, 2^(bits - 127)
__device__ __forceinline__ float from_e8m0(unsigned bits) {
  const float power = __uint_as_float(max(bits << 23, 0x00400000u));
  return fmaf(power, 0.0f, power);  // 255 is NaN; its power is infinite
}
__device__ __forceinline__ e8m0 to_e8m0(float x) {  // the nearest power of two to |x|, ties go up
  const unsigned magnitude = __float_as_uint(x) & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return 255;
  if (magnitude < 0x00600000u) return 0;
  return (e8m0)((magnitude >> 23) + (magnitude < 0x00800000u ? 1u : (magnitude >> 22) & 1u));
}

//@ part fp4_e2m1 : small_float
using fp4_e2m1 = unsigned char;  // two to a byte, low nibble first
__device__ __forceinline__ float from_fp4_e2m1(unsigned nibble) {
  const float magnitude = __uint_as_float((nibble & 7u) << 22) * __uint_as_float((127u + 126u) << 23);
  return (nibble & 8u) ? -magnitude : magnitude;
}
__device__ __forceinline__ unsigned to_fp4_e2m1(float x) {  // saturates at 6; NaN becomes 6
  if (x != x) return 7u;
  const unsigned sign = (__float_as_uint(x) >> 28) & 8u;
  if (!(fabsf(x) < 6.0f)) return sign | 7u;
  return sign | narrow_magnitude<1, 1>(x);
}

//@ part int4
using int4_pair = unsigned char;  // two to a byte, low nibble first
__device__ __forceinline__ int from_int4(unsigned nibble) { return (int)(nibble << 28) >> 28; }

//@ part uint4
using uint4_pair = unsigned char;  // two to a byte, low nibble first

//@ part nibble
// Element i of 4-bit elements, two to a byte, low nibble first.
template <class Index>
__device__ __forceinline__ unsigned nibble(const unsigned char* pairs, Index i) {
  return ((unsigned)pairs[i >> 1] >> (4 * (int)(i & 1))) & 15u;
}
