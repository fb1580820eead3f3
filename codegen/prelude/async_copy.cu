// Copies from global to shared memory with cp.async.

//@ part copy_pipeline
// Copies 16 bytes from global to shared memory (cp.async); zeros if not `there`. commit_copies closes a group of
// copies; wait_for_groups waits for all but the newest kNewest groups.
__device__ __forceinline__ void copy_16_bytes(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(to), "l"(__cvta_generic_to_global(from)));
}
__device__ __forceinline__ void copy_16_bytes(unsigned to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0));
}
// Copies 16 bytes of each of kCount lines (cp.async). Destinations are kTo bytes apart; sources are from[i], or kFrom
// bytes apart. `there`: valid bytes of each 16; zeros replace the rest.
template <int kTo, int kAt = 0, class Element, int kCount>
__device__ __forceinline__ void copy_lines(unsigned to, const Element* const (&from)[kCount]) {
  asm volatile("cp.async.cg.shared.global [%0+%1], [%2], 16;"
               :
               : "r"(to), "n"(kAt * kTo), "l"(__cvta_generic_to_global(from[kAt])));
  if constexpr (kAt + 1 < kCount) copy_lines<kTo, kAt + 1>(to, from);
}
template <int kTo, int kAt = 0, class Element, int kCount>
__device__ __forceinline__ void copy_lines(unsigned to, const Element* const (&from)[kCount],
                                           const int (&there)[kCount]) {
  asm volatile("cp.async.cg.shared.global [%0+%1], [%2], 16, %3;"
               :
               : "r"(to), "n"(kAt * kTo), "l"(__cvta_generic_to_global(from[kAt])), "r"(there[kAt]));
  if constexpr (kAt + 1 < kCount) copy_lines<kTo, kAt + 1>(to, from, there);
}
template <int kTo, int kFrom, int kCount, int kAt = 0>
__device__ __forceinline__ void copy_lines(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0+%1], [%2+%3], 16;"
               :
               : "r"(to), "n"(kAt * kTo), "l"(__cvta_generic_to_global(from)), "n"(kAt * kFrom));
  if constexpr (kAt + 1 < kCount) copy_lines<kTo, kFrom, kCount, kAt + 1>(to, from);
}
template <int kTo, int kFrom, int kAt = 0, int kCount>
__device__ __forceinline__ void copy_lines(unsigned to, const void* from, const int (&there)[kCount]) {
  asm volatile("cp.async.cg.shared.global [%0+%1], [%2+%3], 16, %4;"
               :
               : "r"(to), "n"(kAt * kTo), "l"(__cvta_generic_to_global(from)), "n"(kAt * kFrom), "r"(there[kAt]));
  if constexpr (kAt + 1 < kCount) copy_lines<kTo, kFrom, kAt + 1>(to, from, there);
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;"); }
template <int kNewest>
__device__ __forceinline__ void wait_for_groups() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kNewest) : "memory");
}

//@ part copy_async
// Copies kBytes (4, 8 or 16) from global to shared memory (cp.async); zeros if not `there`. wait_for_copies waits for
// all.
template <int kBytes>
__device__ __forceinline__ void copy_async(void* to, const void* from, bool there) {
  const unsigned shared = (unsigned)__cvta_generic_to_shared(to);
  const unsigned long long global = __cvta_generic_to_global(from);
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(shared), "l"(global), "r"(there ? 16 : 0));
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :
                 : "r"(shared), "l"(global), "n"(kBytes), "r"(there ? kBytes : 0));
}
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" : : : "memory"); }

//@ part copy_over : copy_async
// Copies kBytes (4, 8 or 16) to shared memory that this thread has read before, and that no other thread accesses.
template <int kBytes>
__device__ __forceinline__ void copy_over(void* to, const void* from) {
  asm volatile("" : : : "memory");  // the reads stay before the copy
  copy_async<kBytes>(to, from, true);
}

//@ part line_copies
// Divides a tile of kLines lines of kUnits units of kBytes among kWarps warps. A warp copies kTogether units of kHigh
// lines at a time, all warps kWide units of kDown * kHigh lines. There are no bank conflicts if lines in shared memory
// are an odd multiple of 16 bytes apart. `line`, `unit`: the thread's first place.
template <int kWarps, int kLines, int kUnits, int kBytes = 16>
struct Lines {
  enum {
    kTogether = kBytes < 16 ? 64 / kBytes : kUnits % 8 == 0 ? 8 : kUnits % 4 == 0 ? 4 : 2,
    kHigh = 32 / kTogether,
    kDown = kLines / kHigh < kWarps ? kLines / kHigh : kWarps,
    kWide = kWarps / kDown * kTogether
  };
  int line, unit;
  __device__ __forceinline__ explicit Lines(int thread) {
    const int lane = thread % 32, warp = thread / 32;
    const bool by_lines = kBytes < 16 || kTogether == 8;
    unit = warp / kDown * kTogether + (by_lines ? lane % kTogether : lane / 8 % kTogether);
    line = warp % kDown * kHigh + (by_lines ? lane / kTogether : lane % 8 + lane / (8 * kTogether) * 8);
    if (kBytes < 16 && kHigh * kDown % 8 == 0) line = line / 8 * 8 + line / 2 % 4 + line % 2 * 4;
  }
  // Copies the thread's units of a full tile; `to`, `from`: its first place. Lines are kStride bytes apart in shared
  // memory, `step` elements in global memory.
  template <int kStride, int kPiece = 0, class T>
  __device__ __forceinline__ void copy(unsigned to, const T* from, long long step) const {
    constexpr int kPieces = (kUnits + kWide - 1) / kWide;  // the thread's units in a line
    constexpr int kLine = kPiece / kPieces * kDown * kHigh, kUnit = kPiece % kPieces * kWide;
    if constexpr (kLine < kLines) {
      if (kUnit + kWide <= kUnits || unit + kUnit < kUnits) {
        const unsigned long long there =
            __cvta_generic_to_global(from + kLine * step + kUnit * (kBytes / (int)sizeof(T)));
        if constexpr (kBytes == 16)
          asm volatile("cp.async.cg.shared.global [%0+%1], [%2], 16;"
                       :
                       : "r"(to), "n"(kLine * kStride + kUnit * kBytes), "l"(there));
        else
          asm volatile("cp.async.ca.shared.global [%0+%1], [%2], %3;"
                       :
                       : "r"(to), "n"(kLine * kStride + kUnit * kBytes), "l"(there), "n"(kBytes));
      }
      copy<kStride, kPiece + 1>(to, from, step);
    }
  }
  // Copies the thread's units of a partial tile: lines from number `there` on become 0.
  template <int kStride, class T>
  __device__ __forceinline__ void copy_some(unsigned to, const T* from, long long step, int there) const {
#pragma unroll 1
    for (int l = line; l < kLines + line; l += kDown * kHigh) {
#pragma unroll
      for (int u = 0; u < kUnits; u += kWide) {
        if (u + kWide > kUnits && u + unit >= kUnits) continue;
        const unsigned long long at = __cvta_generic_to_global(from + u * (kBytes / (int)sizeof(T)));
        if constexpr (kBytes == 16)
          asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                       :
                       : "r"(to + u * kBytes), "l"(at), "r"(l < there ? kBytes : 0));
        else
          asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                       :
                       : "r"(to + u * kBytes), "l"(at), "n"(kBytes), "r"(l < there ? kBytes : 0));
      }
      to += kDown * kHigh * kStride, from += kDown * kHigh * step;
    }
  }
};
