// Pieces of an operand that a thread copies to shared memory for itself, transforms, and stores to a swizzled tile.

//@ part copy_pieces : copy_pipeline words
// Copies piece number `each` of a thread, of kBytes (4, 8 or a multiple of 16), to shared memory asynchronously, or
// zeros if !there; the same thread reads it back. Units of 16 bytes (or kBytes) of neighbouring threads are contiguous.
template <int kBytes, int kThreads>
__device__ __forceinline__ void copy_piece(unsigned to, const void* from, int each, bool there) {
  if constexpr (kBytes >= 16) {
#pragma unroll
    for (int i = 0; i < kBytes / 16; ++i)
      copy_16_bytes(to + ((each * (kBytes / 16) + i) * kThreads + threadIdx.x) * 16, (const char*)from + 16 * i, there);
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :
                 : "r"(to + (each * kThreads + threadIdx.x) * kBytes), "l"(__cvta_generic_to_global(from)), "n"(kBytes),
                   "r"(there ? kBytes : 0));
  }
}
template <int kBytes, int kThreads>
__device__ __forceinline__ Words<kBytes / 4> load_copied_piece(const unsigned char* copies, int each) {
  if constexpr (kBytes < 16) {
    return load_words<kBytes / 4>(copies + (each * kThreads + threadIdx.x) * kBytes);
  } else {
    Words<kBytes / 4> piece;
#pragma unroll
    for (int i = 0; i < kBytes / 16; ++i) {
      const auto four = load_words<4>(copies + ((each * (kBytes / 16) + i) * kThreads + threadIdx.x) * 16);
#pragma unroll
      for (int k = 0; k < 4; ++k) piece.w[i * 4 + k] = four.w[k];
    }
    return piece;
  }
}

//@ part store_units : swizzle words
// Stores words to a swizzled tile, from byte `byte` of a line on: whole units of 16 bytes, or half of one.
template <int kUnits, int kCount>
__device__ __forceinline__ void store_units(unsigned char* tile, int line, int byte, const Words<kCount>& words) {
  static_assert(kCount == 2 || kCount % 4 == 0);
  if constexpr (kCount == 2)
    *(uint2*)(tile + swizzled<kUnits>(line, byte / 16) + byte % 16) = make_uint2(words.w[0], words.w[1]);
#pragma unroll
  for (int i = 0; i < kCount / 4; ++i)
    *(uint4*)(tile + swizzled<kUnits>(line, byte / 16 + i)) =
        make_uint4(words.w[4 * i], words.w[4 * i + 1], words.w[4 * i + 2], words.w[4 * i + 3]);
}

//@ part units_in_place : swizzle words kept
// Stores words to a swizzled tile at `place`, a precomputed byte offset: half a unit of 16 bytes, or n units from a
// multiple of n on, n a power of two.
template <int kUnits>
__device__ __forceinline__ int swizzled_offset(int line, int byte) {
  return (int)swizzled<kUnits>(line, byte / 16) + byte % 16;
}
template <int kCount>
__device__ __forceinline__ void store_in_place(unsigned char* tile, int place, const Words<kCount>& words) {
  static_assert(kCount == 2 || kCount % 4 == 0);
  if constexpr (kCount == 2) *(uint2*)(tile + place) = make_uint2(words.w[0], words.w[1]);
#pragma unroll
  for (int i = 0; i < kCount / 4; ++i)
    *(uint4*)(tile + (place ^ 16 * i)) =
        make_uint4(words.w[4 * i], words.w[4 * i + 1], words.w[4 * i + 2], words.w[4 * i + 3]);
}
