// Copies a part of the accumulators of a warp to shared memory, where the epilogue reads them by rows.

//@ part staged_part : staged_sums
// kEights of the columns of each sum, those of the part-th of kParts parts, each sum kApart behind the one before:
// registers are known by name alone, so that the part is found by halves.
template <bool kHalves, int kEights, int kApart, int kFirst, int kParts, class Staged, class... Sums>
__device__ __forceinline__ void stage_part(int part, int lane, Staged* staged, const Sums&... sums) {
  if constexpr (kParts == 1) {
    ((stage_sums<kHalves>(staged, (const Staged (&)[kEights][4])sums[kFirst * kEights], lane), staged += kApart), ...);
  } else {
    constexpr int kHalf = kParts / 2;
    if (part < kFirst + kHalf)
      stage_part<kHalves, kEights, kApart, kFirst, kHalf>(part, lane, staged, sums...);
    else
      stage_part<kHalves, kEights, kApart, kFirst + kHalf, kParts - kHalf>(part, lane, staged, sums...);
  }
}

//@ part sum_registers : staged_part
// A lane's sums that are PTX registers by name, "sum3": so many from the first on. C++ arrays would be operands of each
// product, for which NVRTC takes half as long again.
template <int kFirst, int kCount>
struct Registers {};
// Eights of sums to shared memory, two in a statement: of each the lane's two sums of a row and two of the row eight on.
// `one`, `other`: where the first and the second eight go.
template <int kFirst, int kEights, int kLower, int kApart, int kAt = 0>
__device__ __forceinline__ void store_registers(unsigned one, unsigned other) {
  static_assert(kEights % 2 == 0, "a statement stores two eights");
  asm volatile(
      "st.shared.v2.b32 [%0+%2], {sum%4, sum%5};\nst.shared.v2.b32 [%0+%3], {sum%6, sum%7};\n"
      "st.shared.v2.b32 [%1+%2], {sum%8, sum%9};\nst.shared.v2.b32 [%1+%3], {sum%10, sum%11};"
      :
      : "r"(one), "r"(other), "n"(kAt), "n"(kAt + kLower), "n"(kFirst), "n"(kFirst + 1), "n"(kFirst + 2),
        "n"(kFirst + 3), "n"(kFirst + 4), "n"(kFirst + 5), "n"(kFirst + 6), "n"(kFirst + 7)
      : "memory");
  if constexpr (kEights > 2) store_registers<kFirst + 8, kEights - 2, kLower, kApart, kAt + kApart>(one, other);
}
template <bool kHalves, int kEights, int kApart, int kFirst, int kParts, int... kSums, int... kCounts>
__device__ __forceinline__ void stage_registers(int part, unsigned one, unsigned other,
                                                Registers<kSums, kCounts>... sums) {
  if constexpr (kParts == 1) {
    constexpr int kLower = 4 * staged_place<8 * kEights, kHalves>(8, 0);
    constexpr int kNextTwo = kEights > 2 ? 4 * staged_place<8 * kEights, kHalves>(0, 16) : 0;
    ((store_registers<kSums + 4 * kEights * kFirst, kEights, kLower, kNextTwo>(one, other), one += 4 * kApart,
      other += 4 * kApart),
     ...);
  } else {
    constexpr int kHalf = kParts / 2;
    if (part < kFirst + kHalf)
      stage_registers<kHalves, kEights, kApart, kFirst, kHalf>(part, one, other, sums...);
    else
      stage_registers<kHalves, kEights, kApart, kFirst + kHalf, kParts - kHalf>(part, one, other, sums...);
  }
}
template <bool kHalves, int kEights, int kApart, int kFirst, int kParts, class Staged, int... kSums, int... kCounts>
__device__ __forceinline__ void stage_part(int part, int lane, Staged* staged, Registers<kSums, kCounts>... sums) {
  const int row = lane / 4, column = lane % 4 * 2;
  stage_registers<kHalves, kEights, kApart, kFirst, kParts>(
      part, shared_address(staged + staged_place<8 * kEights, kHalves>(row, column)),
      shared_address(staged + staged_place<8 * kEights, kHalves>(row, 8 + column)), sums...);
}
