// Dequantization: converts eight consecutive quantized values at a time to 16-bit floats or int8, and applies scales
// and zero points. Elements are packed in words, the first one in the low bits.

//@ part widened : words
// Converts a piece of kCount words to kMade words by kEight, a function of eight quantized values.
template <int kMade, int kFrom>
__device__ constexpr int words_of_eight(Words<kMade> (*)(Words<kFrom>)) {
  return kFrom;
}
template <auto kEight, int kMade, int kCount>
__device__ __forceinline__ Words<kMade> widened(const Words<kCount>& piece) {
  constexpr int kFrom = words_of_eight(kEight), kEach = kMade * kFrom / kCount;
  Words<kMade> made;
#pragma unroll
  for (int i = 0; i < kCount / kFrom; ++i) {
    Words<kFrom> eight;
#pragma unroll
    for (int k = 0; k < kFrom; ++k) eight.w[k] = piece.w[i * kFrom + k];
    const Words<kEach> wide = kEight(eight);
#pragma unroll
    for (int k = 0; k < kEach; ++k) made.w[i * kEach + k] = wide.w[k];
  }
  return made;
}

//@ part pairs
// a * b + c for two packed 16-bit floats, each rounded once.
__device__ __forceinline__ unsigned multiply_add_fp16(unsigned a, unsigned b, unsigned c) {
  asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(a) : "r"(b), "r"(c));
  return a;
}
__device__ __forceinline__ unsigned multiply_add_bf16(unsigned a, unsigned b, unsigned c) {
  asm("fma.rn.bf16x2 %0, %0, %1, %2;" : "+r"(a) : "r"(b), "r"(c));
  return a;
}

//@ part scaled_fp16 : pairs words
// Multiplies packed float16 by one scale, or by a packed scale for each. Adding -0 keeps signed zeros.
template <int kCount>
__device__ __forceinline__ Words<kCount> scaled_fp16(Words<kCount> words, unsigned scale) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) words.w[i] = multiply_add_fp16(words.w[i], scale * 0x10001u, 0x80008000u);
  return words;
}
template <int kCount>
__device__ __forceinline__ Words<kCount> scaled_fp16(Words<kCount> words, const Words<kCount>& scales) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) words.w[i] = multiply_add_fp16(words.w[i], scales.w[i], 0x80008000u);
  return words;
}

//@ part scaled_bf16 : pairs words
// Multiplies packed bfloat16 by one scale, or by a packed scale for each. Adding -0 keeps signed zeros.
template <int kCount>
__device__ __forceinline__ Words<kCount> scaled_bf16(Words<kCount> words, unsigned scale) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) words.w[i] = multiply_add_bf16(words.w[i], scale * 0x10001u, 0x80008000u);
  return words;
}
template <int kCount>
__device__ __forceinline__ Words<kCount> scaled_bf16(Words<kCount> words, const Words<kCount>& scales) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) words.w[i] = multiply_add_bf16(words.w[i], scales.w[i], 0x80008000u);
  return words;
}

//@ part bf16_of_e8m0 : pairs words
// Converts e8m0 (powers of two) to bfloat16: the bits become the exponent. 0 is 2^-127, the subnormal 0x0040; 255
// becomes infinity, then NaN by infinity * 0.
template <int kCount, int kFrom>
__device__ __forceinline__ Words<kCount> bf16_of_e8m0(const Words<kFrom>& powers) {
  static_assert(2 * kFrom == kCount);
  Words<kCount> made;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    unsigned two = __byte_perm(powers.w[i / 2], 0, i % 2 == 0 ? 0x4140 : 0x4342) << 7;
    asm("max.bf16x2 %0, %0, %1;" : "+r"(two) : "r"(0x00400040u));
    made.w[i] = multiply_add_bf16(two, 0u, two);
  }
  return made;
}

//@ part less_fp16 : pairs words
// Subtracts a zero point from packed float16.
template <int kCount>
__device__ __forceinline__ Words<kCount> less_fp16(Words<kCount> words, unsigned zero) {
#pragma unroll
  for (int i = 0; i < kCount; ++i)
    words.w[i] = multiply_add_fp16(words.w[i], 0x3c003c00u, zero * 0x10001u ^ 0x80008000u);
  return words;
}

//@ part less_bf16 : pairs words
// Subtracts a zero point from packed bfloat16.
template <int kCount>
__device__ __forceinline__ Words<kCount> less_bf16(Words<kCount> words, unsigned zero) {
#pragma unroll
  for (int i = 0; i < kCount; ++i)
    words.w[i] = multiply_add_bf16(words.w[i], 0x3f803f80u, zero * 0x10001u ^ 0x80008000u);
  return words;
}

//@ part masked : words
// (bits & kMask) ^ more, in one instruction.
template <unsigned kMask>
__device__ __forceinline__ unsigned masked(unsigned bits, unsigned more) {
  asm("lop3.b32 %0, %0, %1, %2, 0x6a;" : "+r"(bits) : "n"(kMask), "r"(more));
  return bits;
}

//@ part widened_less : widened
// Converts a piece of kCount words to kMade words by kEight, a function of eight values and a zero point to subtract.
template <auto kEight, int kMade, int kCount>
__device__ __forceinline__ Words<kMade> widened_less(const Words<kCount>& piece, unsigned zero) {
  constexpr int kFrom = 4 * kCount / kMade;
  Words<kMade> made;
#pragma unroll
  for (int i = 0; i < kMade / 4; ++i) {
    Words<kFrom> eight;
#pragma unroll
    for (int k = 0; k < kFrom; ++k) eight.w[k] = piece.w[i * kFrom + k];
    const Words<4> wide = kEight(eight, zero);
#pragma unroll
    for (int k = 0; k < 4; ++k) made.w[4 * i + k] = wide.w[k];
  }
  return made;
}

//@ part fp16_of_nibbles : pairs masked
// Converts eight 4-bit integers to float16. As mantissa bits of 1024, the low nibble of a byte gives 1024 + n, the high
// one 1024 + 16 n. kFlip: int4, n is the value + 8. `less` removes the offset and may contain a zero point, exactly:
// float16 represents all integers up to 2048.
template <bool kFlip>
__device__ constexpr unsigned kLessOfNibblesFp16 = kFlip ? 0xd480e408u : 0xd400e400u;  // -72, -1032; -64, -1024
template <bool kFlip>
__device__ __forceinline__ Words<4> fp16_of_nibbles(unsigned eight, unsigned less = kLessOfNibblesFp16<kFlip>) {
  constexpr unsigned kMore = kFlip ? 0x64806408u : 0x64006400u, kTimes = 0x2c003c00u;  // 1/16, 1
  Words<4> made;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    made.w[i] = multiply_add_fp16(masked<0x00f0000fu>(__byte_perm(eight, 0u, 0x1111 * i), kMore), kTimes, less);
  return made;
}

//@ part fp16_of_int4_less : fp16_of_nibbles
__device__ __forceinline__ Words<4> fp16_of_int4_less(Words<1> eight, unsigned zero) {
  return fp16_of_nibbles<true>(eight.w[0], multiply_add_fp16(zero * 0x10001u, 0xbc00bc00u, kLessOfNibblesFp16<true>));
}

//@ part fp16_of_uint4_less : fp16_of_nibbles
__device__ __forceinline__ Words<4> fp16_of_uint4_less(Words<1> eight, unsigned zero) {
  return fp16_of_nibbles<false>(eight.w[0], multiply_add_fp16(zero * 0x10001u, 0xbc00bc00u, kLessOfNibblesFp16<false>));
}

//@ part fp16_of_int4 : fp16_of_nibbles
__device__ __forceinline__ Words<4> fp16_of_int4(Words<1> eight) { return fp16_of_nibbles<true>(eight.w[0]); }

//@ part fp16_of_uint4 : fp16_of_nibbles
__device__ __forceinline__ Words<4> fp16_of_uint4(Words<1> eight) { return fp16_of_nibbles<false>(eight.w[0]); }

//@ part shifted_bf16_of_nibbles : masked words
// Makes bfloat16 128 + n of eight 4-bit integers n, as mantissa bits of 128. kFlip: int4, n is the value + 8.
template <bool kFlip>
__device__ __forceinline__ Words<4> shifted_bf16_of_nibbles(unsigned eight) {
  constexpr unsigned kMore = kFlip ? 0x43084308u : 0x43004300u;
  const unsigned second = eight >> 4;
  Words<4> made;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    made.w[i] = masked<0x000f000fu>(__byte_perm(eight, second, 0x4400 + 0x1111 * i), kMore);
  return made;
}

//@ part bf16_of_nibbles : pairs shifted_bf16_of_nibbles
// Converts eight 4-bit integers to bfloat16. kFlip: int4. `less` removes the offset, and a zero point if there is one.
template <bool kFlip>
__device__ constexpr unsigned kLessOfNibblesBf16 = kFlip ? 0xc308c308u : 0xc300c300u;  // -136, -128
template <bool kFlip>
__device__ __forceinline__ Words<4> bf16_of_nibbles(unsigned eight, unsigned less = kLessOfNibblesBf16<kFlip>) {
  Words<4> made = shifted_bf16_of_nibbles<kFlip>(eight);
#pragma unroll
  for (int i = 0; i < 4; ++i) made.w[i] = multiply_add_bf16(made.w[i], 0x3f803f80u, less);
  return made;
}

//@ part bf16_of_int4_less : bf16_of_nibbles
// Subtracts a zero point of at most 4 bits exactly: bfloat16 represents all integers up to 256.
__device__ __forceinline__ Words<4> bf16_of_int4_less(Words<1> eight, unsigned zero) {
  return bf16_of_nibbles<true>(eight.w[0], multiply_add_bf16(zero * 0x10001u, 0xbf80bf80u, kLessOfNibblesBf16<true>));
}

//@ part bf16_of_uint4_less : bf16_of_nibbles
__device__ __forceinline__ Words<4> bf16_of_uint4_less(Words<1> eight, unsigned zero) {
  return bf16_of_nibbles<false>(eight.w[0], multiply_add_bf16(zero * 0x10001u, 0xbf80bf80u, kLessOfNibblesBf16<false>));
}

//@ part bf16_of_int4 : bf16_of_nibbles
__device__ __forceinline__ Words<4> bf16_of_int4(Words<1> eight) { return bf16_of_nibbles<true>(eight.w[0]); }

//@ part bf16_of_uint4 : bf16_of_nibbles
__device__ __forceinline__ Words<4> bf16_of_uint4(Words<1> eight) { return bf16_of_nibbles<false>(eight.w[0]); }

//@ part int8_of_uint4 : words
__device__ __forceinline__ Words<2> int8_of_uint4(Words<1> eight) {
  const unsigned even = eight.w[0] & 0x0f0f0f0fu, odd = eight.w[0] >> 4 & 0x0f0f0f0fu;
  return {__byte_perm(even, odd, 0x5140), __byte_perm(even, odd, 0x7362)};
}

//@ part int8_of_int4 : words
__device__ __forceinline__ unsigned sign_extend_nibbles(unsigned nibbles) {
  return nibbles | (nibbles & 0x08080808u) * 30u;
}
__device__ __forceinline__ Words<2> int8_of_int4(Words<1> eight) {
  const unsigned even = sign_extend_nibbles(eight.w[0] & 0x0f0f0f0fu);
  const unsigned odd = sign_extend_nibbles(eight.w[0] >> 4 & 0x0f0f0f0fu);
  return {__byte_perm(even, odd, 0x5140), __byte_perm(even, odd, 0x7362)};
}

//@ part fp16_of_bytes : pairs words
// Converts eight 8-bit integers to float16. As mantissa bits of 1024 they give 1024 + n, which `less` makes n. kFlip is
// 0x80808080 for int8, where n is the value + 128.
template <unsigned kFlip>
__device__ constexpr unsigned kLessOfBytesFp16 = kFlip ? 0xe480e480u : 0xe400e400u;  // -1152, -1024
template <unsigned kFlip>
__device__ __forceinline__ Words<4> fp16_of_bytes(Words<2> eight, unsigned less = kLessOfBytesFp16<kFlip>) {
  Words<4> made;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned pair = __byte_perm(eight.w[i / 2] ^ kFlip, 0x64u, i % 2 ? 0x4342 : 0x4140);
    made.w[i] = multiply_add_fp16(pair, 0x3c003c00u, less);
  }
  return made;
}

//@ part fp16_of_int8_less : fp16_of_bytes
__device__ __forceinline__ Words<4> fp16_of_int8_less(Words<2> eight, unsigned zero) {
  constexpr unsigned kFlip = 0x80808080u;
  return fp16_of_bytes<kFlip>(eight, multiply_add_fp16(zero * 0x10001u, 0xbc00bc00u, kLessOfBytesFp16<kFlip>));
}

//@ part fp16_of_uint8_less : fp16_of_bytes
__device__ __forceinline__ Words<4> fp16_of_uint8_less(Words<2> eight, unsigned zero) {
  return fp16_of_bytes<0u>(eight, multiply_add_fp16(zero * 0x10001u, 0xbc00bc00u, kLessOfBytesFp16<0u>));
}

//@ part fp16_of_int8 : fp16_of_bytes
__device__ __forceinline__ Words<4> fp16_of_int8(Words<2> eight) { return fp16_of_bytes<0x80808080u>(eight); }

//@ part fp16_of_uint8 : fp16_of_bytes
__device__ __forceinline__ Words<4> fp16_of_uint8(Words<2> eight) { return fp16_of_bytes<0u>(eight); }

//@ part bf16_of_bytes : pairs masked
// Converts eight 8-bit integers to bfloat16, whose mantissa has 7 bits. The low 7 bits m give 128 + m.
//   signed:   (128 + m) - (top bit ? 256 : 128)
//   unsigned: (128 + m) - (top bit ? 128 : 256) + 128
template <bool kSigned>
__device__ __forceinline__ Words<4> bf16_of_bytes(Words<2> eight) {
  constexpr unsigned kOne = 0x3f803f80u;
  Words<4> made;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned pair = __byte_perm(eight.w[i / 2], 0u, i % 2 ? 0x4342 : 0x4140);
    const unsigned less = masked<0x00800080u>(pair, kSigned ? 0xc300c300u : 0xc380c380u);
    made.w[i] = multiply_add_bf16(masked<0x007f007fu>(pair, 0x43004300u), kOne, less);
    if (!kSigned) made.w[i] = multiply_add_bf16(made.w[i], kOne, 0x43004300u);
  }
  return made;
}

//@ part bf16_of_int8 : bf16_of_bytes
__device__ __forceinline__ Words<4> bf16_of_int8(Words<2> eight) { return bf16_of_bytes<true>(eight); }

//@ part bf16_of_uint8 : bf16_of_bytes
__device__ __forceinline__ Words<4> bf16_of_uint8(Words<2> eight) { return bf16_of_bytes<false>(eight); }

//@ part permuted
// prmt: as __byte_perm, but a selector of 8 + i gives byte i's top bit eight times, which is 0 for bytes below 128.
__device__ __forceinline__ unsigned permuted(unsigned a, unsigned b, unsigned bytes) {
  unsigned made;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(made) : "r"(a), "r"(b), "r"(bytes));
  return made;
}

//@ part shifted_fp16_of_nibbles : masked permuted words
// Makes subnormal float16 n * 2^-24 of eight 4-bit integers n. kFlip: int4, n is the value + 8.
template <bool kFlip>
__device__ __forceinline__ Words<4> shifted_fp16_of_nibbles(unsigned eight) {
  constexpr unsigned kMore = kFlip ? 0x08080808u : 0u;
  const unsigned even = masked<0x0f0f0f0fu>(eight, kMore), odd = masked<0x0f0f0f0fu>(eight >> 4, kMore);
  return {permuted(even, odd, 0xc480), permuted(even, odd, 0xd591), permuted(even, odd, 0xe6a2),
          permuted(even, odd, 0xf7b3)};
}

//@ part shifted_fp16_of_int4 : shifted_fp16_of_nibbles
__device__ __forceinline__ Words<4> shifted_fp16_of_int4(Words<1> eight) {
  return shifted_fp16_of_nibbles<true>(eight.w[0]);
}

//@ part shifted_fp16_of_uint4 : shifted_fp16_of_nibbles
__device__ __forceinline__ Words<4> shifted_fp16_of_uint4(Words<1> eight) {
  return shifted_fp16_of_nibbles<false>(eight.w[0]);
}

//@ part shifted_bf16_of_int4 : shifted_bf16_of_nibbles
__device__ __forceinline__ Words<4> shifted_bf16_of_int4(Words<1> eight) {
  return shifted_bf16_of_nibbles<true>(eight.w[0]);
}

//@ part shifted_bf16_of_uint4 : shifted_bf16_of_nibbles
__device__ __forceinline__ Words<4> shifted_bf16_of_uint4(Words<1> eight) {
  return shifted_bf16_of_nibbles<false>(eight.w[0]);
}

//@ part shifted_fp16_of_bytes : words
// Makes subnormal float16 n * 2^-24 of eight 8-bit integers n. kFlip is 0x80808080 for int8: n is the value + 128.
template <unsigned kFlip>
__device__ __forceinline__ Words<4> shifted_fp16_of_bytes(Words<2> eight) {
  const unsigned first = eight.w[0] ^ kFlip, last = eight.w[1] ^ kFlip;
  return {__byte_perm(first, 0u, 0x4140), __byte_perm(first, 0u, 0x4342), __byte_perm(last, 0u, 0x4140),
          __byte_perm(last, 0u, 0x4342)};
}

//@ part shifted_fp16_of_int8 : shifted_fp16_of_bytes
__device__ __forceinline__ Words<4> shifted_fp16_of_int8(Words<2> eight) {
  return shifted_fp16_of_bytes<0x80808080u>(eight);
}

//@ part shifted_fp16_of_uint8 : shifted_fp16_of_bytes
__device__ __forceinline__ Words<4> shifted_fp16_of_uint8(Words<2> eight) { return shifted_fp16_of_bytes<0u>(eight); }

//@ part shifted_bf16_of_e2m1 : permuted words
// Makes bfloat16 8 (v + 22) = 128 + (48 + 8 v) of eight float4 e2m1 values v. A nibble selects 8 |v| from a table, or 0
// if its sign bit is set. `other` has the signs flipped and so selects those of negative values.
__device__ __forceinline__ Words<4> shifted_bf16_of_e2m1(Words<1> eight) {
  const unsigned other = eight.w[0] ^ 0x88888888u;
  Words<4> made;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const unsigned four = permuted(0x0c080400u, 0x30201810u, eight.w[0] >> 16 * i) + 0x30303030u -
                          permuted(0x0c080400u, 0x30201810u, other >> 16 * i);
    made.w[2 * i] = __byte_perm(four, 0x43u, 0x4140), made.w[2 * i + 1] = __byte_perm(four, 0x43u, 0x4342);
  }
  return made;
}

//@ part fp16_of_e5m2 : words
// Converts eight float8 e5m2 to float16, whose upper byte they are.
__device__ __forceinline__ Words<4> fp16_of_e5m2(Words<2> eight) {
  Words<4> made;
#pragma unroll
  for (int i = 0; i < 4; ++i) made.w[i] = __byte_perm(eight.w[i / 2], 0u, i % 2 ? 0x3424 : 0x1404);
  return made;
}

//@ part fp16_of_e4m3 : words e4m3_pair
__device__ __forceinline__ Words<4> fp16_of_e4m3(Words<2> eight) {
  Words<4> made;
#pragma unroll
  for (int i = 0; i < 4; ++i) made.w[i] = e4m3_pair(eight.w[i / 2], i % 2);
  return made;
}

//@ part bf16_of_e4m3 : words
// Converts eight float8 e4m3 to bfloat16. Before sm_89: shifted into place, the bits are bfloat16 of 2^-120 times the
// value; the top bit of NaN (0x7f) + 1 sets all bits of the result.
__device__ __forceinline__ Words<4> bf16_of_e4m3(Words<2> eight) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  Words<4> made;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    asm("{\n.reg .b32 pair;\n.reg .b16 a, b;\n.reg .f32 low, high;\ncvt.rn.f16x2.e4m3x2 pair, %1;\n"
        "mov.b32 {a, b}, pair;\ncvt.f32.f16 low, a;\ncvt.f32.f16 high, b;\ncvt.rn.bf16x2.f32 %0, high, low;\n}"
        : "=r"(made.w[i])
        : "h"((unsigned short)(eight.w[i / 2] >> i % 2 * 16)));
  return made;
#else
  Words<4> made;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned four = eight.w[i / 2], magnitude = four & 0x7f7f7f7fu;
    const unsigned sign = __byte_perm(four, 0u, i % 2 ? 0x3424 : 0x1404) & 0x80008000u;
    unsigned pair = __byte_perm(magnitude, 0u, i % 2 ? 0x4342 : 0x4140) << 4 | sign;
    asm("fma.rn.bf16x2 %0, %0, %1, %2;" : "+r"(pair) : "r"(0x7b807b80u), "r"(0x80008000u));  // * 2^120 - 0
    unsigned nan;  // a byte's top bit, sixteen times
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(nan) : "r"(magnitude + 0x01010101u), "r"(i % 2 ? 0xbbaa : 0x9988));
    made.w[i] = pair | nan;
  }
  return made;
#endif
}

//@ part fp16_of_e2m1 : permuted words
// Converts eight float4 e2m1 to float16, whose lower byte is 0. Nibbles select the upper byte from a table, or 0 if the
// sign bit is set; nibbles with flipped signs select half the upper byte of negative values, as bytes are below 128.
__device__ __forceinline__ Words<4> fp16_of_e2m1(Words<1> eight) {
  const unsigned other = eight.w[0] ^ 0x88888888u;
  Words<4> made;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    unsigned upper = permuted(0x3e3c3800u, 0x46444240u, eight.w[0] >> 16 * i);
    asm("mad.lo.u32 %0, %1, 2, %0;" : "+r"(upper) : "r"(permuted(0x5f5e5c40u, 0x63626160u, other >> 16 * i)));
    made.w[2 * i] = __byte_perm(upper, 0u, 0x1404), made.w[2 * i + 1] = __byte_perm(upper, 0u, 0x3424);
  }
  return made;
}

//@ part scaled_powers_fp16 : scaled_fp16 fp16
// Multiplies packed float16 by a power of two or NaN, given as float32 bits: in two steps if it exceeds float16's
// normal range. The first step does not round.
template <int kCount>
__device__ __forceinline__ Words<kCount> scaled_powers_fp16(Words<kCount> words, unsigned power) {
  const unsigned near = min(max(power, 0x38800000u), 0x46000000u);  // between 2^-14 and 2^13
  words = scaled_fp16(words, (near >> 13) - 0x1c000u);
  if (near != power) {
    const float rest = __uint_as_float(power) * __uint_as_float(0x7f000000u - near);  // the second factor is 1 / near
    words = scaled_fp16(words, to_fp16(rest > 32768.0f ? 32768.0f : rest));
  }
  return words;
}

//@ part scaled_numbers_bf16 : pairs words
// Computes v * scale from packed bfloat16 x = 8 (v + 22) as x * (scale / 8) - 22 * scale. `scale` is a float32's bits
// with at most four bits of mantissa; their upper half is the same bfloat16.
template <int kCount>
__device__ __forceinline__ Words<kCount> scaled_numbers_bf16(Words<kCount> words, unsigned scale) {
  const unsigned both = __byte_perm(scale, 0u, 0x3232);
  const unsigned by = multiply_add_bf16(both, 0x3e003e00u, 0x80008000u);     // an eighth
  const unsigned less = multiply_add_bf16(both, 0xc1b0c1b0u, 0x80008000u);  // -22
#pragma unroll
  for (int i = 0; i < kCount; ++i) words.w[i] = multiply_add_bf16(words.w[i], by, less);
  return words;
}

//@ part bf16_of_e2m1 : shifted_bf16_of_e2m1 scaled_numbers_bf16
__device__ __forceinline__ Words<4> bf16_of_e2m1(Words<1> eight) {
  return scaled_numbers_bf16(shifted_bf16_of_e2m1(eight), 0x3f800000u);
}
