// What a block's threads read of a tensor here and there is copied to shared memory in one piece.

//@ part stretches : windows
// The vectors of 16 bytes that hold what a block wants of a tensor; none where they are too many.
struct Stretch {
  int first, vectors;
};
// -1 is nowhere.
__device__ __forceinline__ void widen_stretch(unsigned& low, int& high, int at) {
  low = min(low, (unsigned)at), high = max(high, at);
}
template <int kWarps>
__device__ __forceinline__ void put_ends_of_stretch(int* ends, unsigned low, int high) {
  low = __reduce_min_sync(~0u, low), high = __reduce_max_sync(~0u, high);
  if (threadIdx.x % 32 == 0) ends[threadIdx.x / 32] = (int)min(low, 0x7fffffffu), ends[kWarps + threadIdx.x / 32] = high;
}
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
// kApart: a word (an element of 64 bits) is left out behind every 128 bytes.
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
