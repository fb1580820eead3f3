// Boxes of tensors whose axes change places, in shared memory as their lines lie.

//@ part copied_vectors : shared_address
// Up to 16 bytes to shared memory while the thread goes on, as many as lie in front of `end`; zeros stand for the rest.
__device__ __forceinline__ void copy_vector(unsigned to, const unsigned char* from, const void* end) {
  const long long left = (const unsigned char*)end - from;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(left < 16 ? (int)left : 16));
}
__device__ __forceinline__ void copy_vector(unsigned to, const unsigned char* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(to), "l"(__cvta_generic_to_global(from)));
}
__device__ __forceinline__ void wait_for_vectors() {
  asm volatile("cp.async.wait_all;" : : : "memory");
}

//@ part box_tiles : words words64 copied_vectors
// The word at `from`, of whose elements `left` and the ones behind them are beyond the tensor; those are 0.
template <int kBits, bool kWhole, class Index>
__device__ __forceinline__ auto load_word(const void* from, Index left) {
  constexpr int kEach = kBits < 32 ? 32 / kBits : 1;
  if constexpr (kBits == 64) {
    return load_words<2>(from);
  } else {
    if (kWhole || left >= kEach) return load_words<1>(from);
    Words<1> word = {};
#pragma unroll
    for (int e = 0; e + 1 < kEach; ++e)
      if (e < left)
        put_element<kBits>(word, e, kBits == 16 ? ((const unsigned short*)from)[e] : ((const unsigned char*)from)[e]);
    return word;
  }
}
// What is below 65536 by a number that is, too.
template <unsigned kBy>
__device__ __forceinline__ unsigned quotient(unsigned of) {
  return (kBy & (kBy - 1)) == 0 ? of / kBy : __umulhi(of, (unsigned)(((1ull << 32) + kBy - 1) / kBy));
}
// Bytes that a place lies behind the one before it that is a multiple of kBytes.
template <int kBytes>
__device__ __forceinline__ int bytes_behind(const void* place) {
  return (int)((unsigned long long)place & (kBytes - 1));
}
template <int kBytes>
__device__ __forceinline__ void copy_element(unsigned to, const unsigned char* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "n"(kBytes));
}
// Those elements of a word whose places in the line, the first of which is `place`, are not negative and below
// `length`; kWhole: all of them are.
template <int kBits, bool kWhole>
__device__ __forceinline__ void put_elements(unsigned char* to, const Words<1>& word, int place, int length) {
#pragma unroll
  for (int e = 0; e < 32 / kBits; ++e) {
    if (!kWhole && (unsigned)(place + e) >= (unsigned)length) continue;
    if constexpr (kBits == 16)
      ((unsigned short*)to)[e] = (unsigned short)element<kBits>(word, e);
    else
      to[e] = (unsigned char)element<kBits>(word, e);
  }
}
