// What a block's threads read of a tensor here and there is copied to shared memory in one piece.

//@ part stretches : windows
// The vectors of 16 bytes that hold what a block wants of a tensor; none where they are too many.
struct Stretch {
  int first, vectors;
};
// Widens what a thread wants by the element `at`; -1 is none.
__device__ __forceinline__ void widen_stretch(unsigned& low, int& high, int at) {
  low = min(low, (unsigned)at), high = max(high, at);
}
// The same by all threads of a warp together, where what they want lies within 32 words: that becomes bit `turn` of
// `near`. Else they will read it in memory.
template <int kBits>
__device__ __forceinline__ void widen_where_near(unsigned& low, int& high, unsigned& near, int turn, int at) {
  const unsigned from = __reduce_min_sync(~0u, (unsigned)at);
  const int to = __reduce_max_sync(~0u, at);
  constexpr int kEach = kBits > 32 ? 1 : 32 / kBits;
  if (to >= 0 && to / kEach - (int)from / kEach < 32) low = min(low, from), high = max(high, to), near |= 1u << turn;
}
// The same wherever it lies; three bits of `parts` for each turn say how many times 32 words behind the first of its
// warp's this thread's element is, 7 that it has none.
template <int kBits>
__device__ __forceinline__ void widen_in_parts(unsigned& low, int& high, unsigned& parts, int turn, int at) {
  const int from = (int)min(__reduce_min_sync(~0u, (unsigned)at), 0x7fffffffu);
  constexpr int kEach = kBits > 32 ? 1 : 32 / kBits;
  low = min(low, (unsigned)at), high = max(high, at);
  const int words = (kBits > 32 ? 2 : 1) * (at / kEach - from / kEach);
  parts |= (at < 0 ? 7u : (unsigned)min(3, words / 32)) << 3 * turn;
}
// The bits of an element of shared memory, by four accesses, one for each part: in none do two threads want different
// words of a bank.
template <int kBits, class T>
__device__ __forceinline__ auto element_in_parts(const T* from, unsigned part) {
  if constexpr (kBits == 64) {
    unsigned long long bits = 0;
    asm volatile(
        "{\n.reg .pred p<4>;\nsetp.eq.u32 p0, %2, 0;\nsetp.eq.u32 p1, %2, 1;\nsetp.eq.u32 p2, %2, 2;\nsetp.eq.u32 p3, %2, 3;\n"
        "@p0 ld.u64 %0, [%1];\n@p1 ld.u64 %0, [%1];\n@p2 ld.u64 %0, [%1];\n@p3 ld.u64 %0, [%1];\n}"
        : "+l"(bits)
        : "l"(from), "r"(part)
        : "memory");
    return bits;
  } else {
    unsigned bits = 0;
    if constexpr (kBits == 32)
      asm volatile(
          "{\n.reg .pred p<4>;\nsetp.eq.u32 p0, %2, 0;\nsetp.eq.u32 p1, %2, 1;\nsetp.eq.u32 p2, %2, 2;\nsetp.eq.u32 p3, %2, 3;\n"
          "@p0 ld.u32 %0, [%1];\n@p1 ld.u32 %0, [%1];\n@p2 ld.u32 %0, [%1];\n@p3 ld.u32 %0, [%1];\n}"
          : "+r"(bits)
          : "l"(from), "r"(part)
          : "memory");
    else if constexpr (kBits == 16)
      asm volatile(
          "{\n.reg .pred p<4>;\nsetp.eq.u32 p0, %2, 0;\nsetp.eq.u32 p1, %2, 1;\nsetp.eq.u32 p2, %2, 2;\nsetp.eq.u32 p3, %2, 3;\n"
          "@p0 ld.u16 %0, [%1];\n@p1 ld.u16 %0, [%1];\n@p2 ld.u16 %0, [%1];\n@p3 ld.u16 %0, [%1];\n}"
          : "+r"(bits)
          : "l"(from), "r"(part)
          : "memory");
    else
      asm volatile(
          "{\n.reg .pred p<4>;\nsetp.eq.u32 p0, %2, 0;\nsetp.eq.u32 p1, %2, 1;\nsetp.eq.u32 p2, %2, 2;\nsetp.eq.u32 p3, %2, 3;\n"
          "@p0 ld.u8 %0, [%1];\n@p1 ld.u8 %0, [%1];\n@p2 ld.u8 %0, [%1];\n@p3 ld.u8 %0, [%1];\n}"
          : "+r"(bits)
          : "l"(from), "r"(part)
          : "memory");
    return bits;
  }
}
// A warp's first and last element, for all warps of the block to see: the firsts of all warps, then the lasts.
template <int kWarps>
__device__ __forceinline__ void put_ends_of_stretch(int* ends, unsigned low, int high) {
  low = __reduce_min_sync(~0u, low), high = __reduce_max_sync(~0u, high);
  if (threadIdx.x % 32 == 0) ends[threadIdx.x / 32] = (int)min(low, 0x7fffffffu), ends[kWarps + threadIdx.x / 32] = high;
}
// What lies between all warps' ends; nothing where that is more than kMost vectors.
template <int kBits, int kWarps, int kMost>
__device__ __forceinline__ Stretch stretch_between(const int* ends) {
  constexpr int kEach = 128 / kBits;
  int low = 0x7fffffff, high = -1;
#pragma unroll
  for (int i = 0; i < kWarps; i += 4) {
    const int4 lows = *(const int4*)(ends + i), highs = *(const int4*)(ends + kWarps + i);
    low = min(min(low, min(lows.x, lows.y)), min(lows.z, lows.w));
    high = max(max(high, max(highs.x, highs.y)), max(highs.z, highs.w));
  }
  const int first = low / kEach, count = high / kEach - first + 1;
  return {first, high < 0 || count > kMost ? 0 : count};
}
// By all threads of the block. kApart: a word (an element of 64 bits) is left out behind every 128 bytes.
template <int kBits, int kThreads, int kMost, bool kApart, Inside kInside, bool kStream, class Index>
__device__ __forceinline__ void copy_stretch(unsigned char* tile, const void* tensor, Index count, Stretch stretch) {
  constexpr int kTurns = (kMost + kThreads - 1) / kThreads;
  Words<4> read[kTurns];
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int v = turn * kThreads + threadIdx.x;
    if (v < stretch.vectors) read[turn] = vector_of_tensor<kBits, kInside, kStream>(tensor, count, stretch.first + v);
  }
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int v = turn * kThreads + threadIdx.x;
    if (v >= stretch.vectors) continue;
    const Words<4>& w = read[turn];
    if constexpr (!kApart) {
      *(uint4*)(tile + 16 * v) = make_uint4(w.w[0], w.w[1], w.w[2], w.w[3]);
    } else if constexpr (kBits == 64) {
      uint2* const to = (uint2*)tile + 2 * v + v / 8;
      to[0] = make_uint2(w.w[0], w.w[1]), to[1] = make_uint2(w.w[2], w.w[3]);
    } else {
      unsigned* const to = (unsigned*)tile + 4 * v + v / 8;
      to[0] = w.w[0], to[1] = w.w[1], to[2] = w.w[2], to[3] = w.w[3];
    }
  }
}
