// Staged copies: rows of tensors go to shared memory asynchronously; words of several rows are transposed in registers.

//@ part staged_copy : shared_address
// Copies 16 bytes to shared memory asynchronously; bytes at and beyond `end` become 0.
__device__ __forceinline__ void copy_vector(unsigned to, const unsigned char* from, const unsigned char* end) {
  const long long left = end - from;
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
// of / kBy by a multiplication, exact while of * kBy is below 2^32.
template <unsigned kBy>
__device__ __forceinline__ unsigned quotient(unsigned of) {
  return (kBy & (kBy - 1)) == 0 ? of / kBy : __umulhi(of, (unsigned)(((1ull << 32) + kBy - 1) / kBy));
}
// The address modulo kBytes, a power of two.
template <int kBytes>
__device__ __forceinline__ int address_modulo(const void* place) {
  return (int)((unsigned long long)place & (kBytes - 1));
}

//@ part transposed_words : words
// Transposes one word of each of kRows neighbouring rows, of elements of kBits: turned[i] has element i of each row, in
// the order of rows.
template <int kBits, int kRows, int kWords, int kPlanes>
__device__ __forceinline__ void transpose_words(Words<kWords> (&turned)[kPlanes], const Words<kRows>& rows) {
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    if constexpr (kBits == 16) {
      turned[0].w[i] = __byte_perm(rows.w[2 * i], rows.w[2 * i + 1], 0x5410u);
      turned[1].w[i] = __byte_perm(rows.w[2 * i], rows.w[2 * i + 1], 0x7632u);
    } else if constexpr (kBits == 8) {
      const unsigned* const w = rows.w + 4 * i;
      const unsigned low = __byte_perm(w[0], w[1], 0x5140u), high = __byte_perm(w[0], w[1], 0x7362u);
      const unsigned next = __byte_perm(w[2], w[3], 0x5140u), last = __byte_perm(w[2], w[3], 0x7362u);
      turned[0].w[i] = __byte_perm(low, next, 0x5410u), turned[1].w[i] = __byte_perm(low, next, 0x7632u);
      turned[2].w[i] = __byte_perm(high, last, 0x5410u), turned[3].w[i] = __byte_perm(high, last, 0x7632u);
    } else {
      static_assert(kBits == 4);
      unsigned even[4], odd[4];  // even and odd elements of two rows: a byte is an element of each, the first row's low
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const unsigned first = rows.w[8 * i + 2 * j], second = rows.w[8 * i + 2 * j + 1];
        even[j] = (first & 0x0f0f0f0fu) | (second << 4 & 0xf0f0f0f0u);
        odd[j] = (first >> 4 & 0x0f0f0f0fu) | (second & 0xf0f0f0f0u);
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const unsigned bytes = (unsigned)j | (unsigned)(j + 4) << 4;
        turned[2 * j].w[i] =
            __byte_perm(__byte_perm(even[0], even[1], bytes), __byte_perm(even[2], even[3], bytes), 0x5410u);
        turned[2 * j + 1].w[i] =
            __byte_perm(__byte_perm(odd[0], odd[1], bytes), __byte_perm(odd[2], odd[3], bytes), 0x5410u);
      }
    }
  }
}
