// Stages a warp's accumulators in shared memory, part by part; the epilogue reads them from there by rows.

//@ part staged_part : staged_sums
// Stages part number `part` of each accumulator, kEights groups of eight columns; accumulators are kApart elements
// apart. Registers cannot be indexed, so the part is found by binary search among kParts from kFirst on.
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

//@ part accumulator_registers : staged_part
// kCount accumulators of a lane that are PTX registers by name, "sum3", from number kFirst on. C++ arrays would be
// operands of each MMA, which makes NVRTC slower.
template <int kFirst, int kCount>
struct Registers {};
// Stores kEights groups of eight columns to shared memory, two per statement: from `one` and `other` on, kApart bytes
// to the next two. Of a group a lane has two sums of its row and two of row + 8, kLower bytes on.
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
// Finds the part by binary search and stores it, the first two groups of each accumulator from `one` and `other` on.
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
