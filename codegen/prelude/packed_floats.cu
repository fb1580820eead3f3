// Converts 8-bit and 16-bit floats that are packed in words.

//@ part fp16_element : words
// Converts float16 element e to float. The halves of the word are named as 16-bit registers, which needs no shift.
template <int kCount>
__device__ __forceinline__ float fp16_element(const Words<kCount>& words, int e) {
  unsigned short low, high;
  asm("mov.b32 {%0, %1}, %2;" : "=h"(low), "=h"(high) : "r"(words.w[e / 2]));
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(e % 2 == 0 ? low : high));
  return x;
}

//@ part e4m3_pair
// Converts two of four float8 e4m3 to packed float16: the last two if `second`. Before sm_89: shifted into place, the
// bits are float16 of 2^-8 times the value; NaN (0x7f + 1 sets the top bit) gets an exponent of all ones.
__device__ __forceinline__ unsigned e4m3_pair(unsigned four, int second) {
  unsigned pair;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short low, high;
  asm("mov.b32 {%0, %1}, %2;" : "=h"(low), "=h"(high) : "r"(four));
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(second ? high : low));
#else
  const unsigned magnitude = four & 0x7f7f7f7fu;
  const unsigned marked = magnitude | ((magnitude + 0x01010101u) & 0x80808080u);
  const unsigned sign = __byte_perm(four, 0u, second ? 0x3424 : 0x1404) & 0x80008000u;
  pair = __byte_perm(marked, 0u, second ? 0x4342 : 0x4140) << 7 | sign;
  asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(pair) : "r"(0x5c005c00u), "r"(0x80008000u));  // * 256 - 0
#endif
  return pair;
}

//@ part widen_e4m3 : e4m3_pair
// Converts float8 e4m3, in the low byte of each element, to float16 in place, four at a time.
template <int kCount>
__device__ __forceinline__ void widen_e4m3(unsigned short (&elements)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    const unsigned four = elements[i] | elements[i + 1] << 8 | elements[i + 2] << 16 | elements[i + 3] << 24;
    const unsigned first = e4m3_pair(four, 0), second = e4m3_pair(four, 1);
    elements[i] = first, elements[i + 1] = first >> 16;
    elements[i + 2] = second, elements[i + 3] = second >> 16;
  }
}

//@ part e4m3_element : words e4m3_pair fp16_element
// Converts float8 e4m3 element e to float. The compiler converts a pair once for both of its elements.
template <int kCount>
__device__ __forceinline__ float e4m3_element(const Words<kCount>& words, int e) {
  return fp16_element(Words<1>{e4m3_pair(words.w[e / 4], e / 2 % 2)}, e % 2);
}

//@ part packed_words : words pack_pair
// Rounds values to 16-bit floats and packs them, two per conversion.
template <int kCount>
__device__ __forceinline__ Words<kCount / 2> bf16_words(const float (&values)[kCount]) {
  Words<kCount / 2> words;
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) words.w[i] = pack_bf16(values[2 * i], values[2 * i + 1]);
  return words;
}
template <int kCount>
__device__ __forceinline__ Words<kCount / 2> fp16_words(const float (&values)[kCount]) {
  Words<kCount / 2> words;
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) words.w[i] = pack_fp16(values[2 * i], values[2 * i + 1]);
  return words;
}
