// Windows of channels in shared memory as left operands of mma, slot by slot of the depth.

//@ part load_slots
// Pieces of 16 lines, kStep bytes apart, the last eight lines of each kHalf behind the first: of a lane's line eight
// bytes, which are two operands, or four bytes of two slots.
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

//@ part staged_eights
// Sums in eights, as many in a line: eights of later lines have changed places, and halves of every second four eights,
// so that what four lines store at a time, and what eight threads read that have neighbours, is in different banks.
template <int kEights>
__device__ __forceinline__ unsigned place_in_eights(unsigned line, unsigned column) {
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
__device__ __forceinline__ Eight<Sum> load_eight(const Sum* staged, int line, int eight) {
  const HalfOfEight<Sum> low = *(const HalfOfEight<Sum>*)&staged[place_in_eights<kEights>(line, eight * 8)];
  const HalfOfEight<Sum> high = *(const HalfOfEight<Sum>*)&staged[place_in_eights<kEights>(line, eight * 8 + 4)];
  return {{low.v[0], low.v[1], low.v[2], low.v[3], high.v[0], high.v[1], high.v[2], high.v[3]}};
}
