// Grouped implicit GEMM: loads MMA operands from windows in shared memory; stages accumulators for the epilogue.

//@ part load_slots
// Loads the left operands of kCount m16 MMAs, kStep bytes apart, each with rows 8 to 15 kHalf bytes after rows 0 to 7.
// A lane reads 8 bytes at shared address `line`, its K slot, or 4 bytes in each of two slots, `first` and `second`.
template <int kStep, int kHalf, int kAt = 0, int kCount>
__device__ __forceinline__ void load_slots(unsigned (&m)[kCount][4], unsigned line) {
  asm volatile("ld.shared.v2.u32 {%0,%1}, [%2+%3];"
               : "=r"(m[kAt][0]), "=r"(m[kAt][2])
               : "r"(line), "n"(kAt * kStep));
  asm volatile("ld.shared.v2.u32 {%0,%1}, [%2+%3];"
               : "=r"(m[kAt][1]), "=r"(m[kAt][3])
               : "r"(line), "n"(kAt * kStep + kHalf));
  if constexpr (kAt + 1 < kCount) load_slots<kStep, kHalf, kAt + 1>(m, line);
}
template <int kStep, int kHalf, int kAt = 0, int kCount>
__device__ __forceinline__ void load_slots(unsigned (&m)[kCount][4], unsigned first, unsigned second) {
  asm volatile("ld.shared.u32 %0, [%1+%2];" : "=r"(m[kAt][0]) : "r"(first), "n"(kAt * kStep));
  asm volatile("ld.shared.u32 %0, [%1+%2];" : "=r"(m[kAt][1]) : "r"(first), "n"(kAt * kStep + kHalf));
  asm volatile("ld.shared.u32 %0, [%1+%2];" : "=r"(m[kAt][2]) : "r"(second), "n"(kAt * kStep));
  asm volatile("ld.shared.u32 %0, [%1+%2];" : "=r"(m[kAt][3]) : "r"(second), "n"(kAt * kStep + kHalf));
  if constexpr (kAt + 1 < kCount) load_slots<kStep, kHalf, kAt + 1>(m, first, second);
}

//@ part staged_channel_vectors
// Swizzled index of an accumulator; a line is kEights vectors of eight columns. Vectors are rotated by the line; those
// with number & 4 have their halves swapped. Stores of four lines at a time and loads of neighbouring vectors by eight
// threads then have no bank conflicts.
template <int kEights>
__device__ __forceinline__ unsigned swizzled_accumulator(unsigned line, unsigned column) {
  const unsigned turned = kEights % 4 == 0 ? line : kEights % 2 == 0 ? line / 2 : 0;
  const unsigned eight = line * kEights + (column / 8 + turned) % kEights;
  return (eight * 2 + (column / 4 % 2 ^ eight / 4 % 2)) * 4 + column % 4;
}
template <class Sum>
struct Eight {
  Sum v[8];
};
template <class Sum>
struct alignas(16) HalfOfEight {
  Sum v[4];
};
template <int kEights, class Sum>
__device__ __forceinline__ Eight<Sum> load_channel_vector(const Sum* staged, int line, int eight) {
  const HalfOfEight<Sum> low = *(const HalfOfEight<Sum>*)&staged[swizzled_accumulator<kEights>(line, eight * 8)];
  const HalfOfEight<Sum> high = *(const HalfOfEight<Sum>*)&staged[swizzled_accumulator<kEights>(line, eight * 8 + 4)];
  return {{low.v[0], low.v[1], low.v[2], low.v[3], high.v[0], high.v[1], high.v[2], high.v[3]}};
}

//@ part gathered_unit
// Packs one position's elements of `count` channels, `stride` elements apart, into 16 bytes; the rest is 0.
template <class Bits, class Stride>
__device__ __forceinline__ uint4 gather_unit(const Bits* from, Stride stride, int count) {
  constexpr int kElements = 16 / sizeof(Bits), kOfWord = 4 / sizeof(Bits);
  Bits v[kElements];
#pragma unroll
  for (int e = 0; e < kElements; ++e) v[e] = e < count ? from[e * stride] : (Bits)0;
  unsigned words[4] = {};
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if constexpr (sizeof(Bits) == 2) {
      asm("mov.b32 %0, {%1, %2};" : "=r"(words[w]) : "h"(v[w * 2]), "h"(v[w * 2 + 1]));
    } else {
#pragma unroll
      for (int e = 0; e < kOfWord; ++e) words[w] |= (unsigned)v[w * kOfWord + e] << (8 * sizeof(Bits) * e);
    }
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

//@ part staged_channels
// Swizzled index of an accumulator; a channel's results are contiguous, channels kPitch apart. Vectors of eight results
// with number & 4 have their halves swapped, so that eight threads read neighbouring vectors without bank conflicts.
template <int kPitch>
__device__ __forceinline__ unsigned place_in_channel(unsigned channel, unsigned result) {
  return channel * kPitch + (result ^ result / 8 & 4);
}
template <int kWidth, class Sum>
struct ChannelResults {
  Sum v[kWidth];
};
template <int kPitch, int kWidth, class Sum>
__device__ __forceinline__ ChannelResults<kWidth, Sum> load_results(const Sum* staged, unsigned channel, unsigned result) {
  constexpr int kPart = kWidth < 4 ? kWidth : 4;
  struct alignas(kPart * sizeof(Sum)) Part {
    Sum v[kPart];
  };
  ChannelResults<kWidth, Sum> found;
#pragma unroll
  for (int i = 0; i < kWidth; i += kPart) {
    const Part part = *(const Part*)&staged[place_in_channel<kPitch>(channel, result + i)];
#pragma unroll
    for (int e = 0; e < kPart; ++e) found.v[i + e] = part.v[e];
  }
  return found;
}
