// Fragments of mma.sync and wgmma: matrices spread over a warp's registers.
//
// All shapes follow one pattern. With E elements of A or B to a register, g = lane / 4 and t = lane % 4:
//   A, register r, element i:  row g + 8 * (r odd), column t * E + i + (r / 2) * 4E   (8-row shapes: row g, r * 4E)
//   B, register r, element i:  row t * E + i + r * 4E, column g
//   C, element i:              row g + 8 * (i / 2), column 2t + i % 2
// So the 32 lanes of a register hold eight consecutive rows of A, or columns of B, with 4E elements each.
#pragma once

#include <algorithm>
#include <type_traits>

#include "runtime/emulator/lanes.h"
#include "runtime/emulator/matrix_values.h"

namespace fusec::emulator {

inline int register_bits(Type type) {
  return type == Type::kF64 ? 64 : 32;
}

// Reads A as m x k (`tall`: m = 16, else 8), or B transposed as 8 x k, so that k is the last dimension of both.
template <class T>
void read_fragment(const Warp& warp, const Operand* registers, int count, Type type, bool tall, int k, T* out) {
  const int row_bytes = register_bits(type) / 2, columns = 4 * register_bits(type) / bits(type);
  for (int r = 0; r < count; ++r) {
    T* first = out + (tall ? r % 2 * 8 * k + r / 2 * columns : r * columns);
    read_rows(type, warp.source(registers[r].slot), 8, row_bytes, first, k);
  }
}

// Reads the accumulators as m x 8. A register of float16 pairs holds eight rows; a register of another type holds every
// second element of eight rows.
template <class T>
void read_accumulators(const Warp& warp, const Operand* registers, bool half, int m, T* sums) {
  for (int i = 0; i < m / 8; ++i) {
    T* first = sums + 64 * i;
    if (half) {
      read_rows(Type::kF16, warp.source(registers[i].slot), 8, 16, first, 8);
      continue;
    }
    const auto even = load_lanes<T>(warp, registers[2 * i].slot), odd = load_lanes<T>(warp, registers[2 * i + 1].slot);
    for (int lane = 0; lane < kLanes; ++lane) {
      first[2 * lane] = even.at[lane];
      first[2 * lane + 1] = odd.at[lane];
    }
  }
}

template <class T>
T stored_accumulator(T value) {
  if constexpr (std::is_same_v<T, float>)
    return canonical(value);
  else
    return value;
}

template <class T>
void write_accumulators(Warp& warp, const Operand* registers, bool half, int m, const T* sums, std::uint32_t lanes) {
  for (int i = 0; i < m / 8; ++i) {
    const T* first = sums + 64 * i;
    if (half) {
      Lanes<std::uint32_t> pairs;
      for (int lane = 0; lane < kLanes; ++lane) {
        const std::uint32_t low = float_to_half(static_cast<float>(first[2 * lane])),
                            high = float_to_half(static_cast<float>(first[2 * lane + 1]));
        pairs.at[lane] = low | high << 16;
      }
      store_lanes(warp, registers[i].slot, pairs, lanes);
      continue;
    }
    Lanes<T> even, odd;
    for (int lane = 0; lane < kLanes; ++lane) {
      even.at[lane] = stored_accumulator(first[2 * lane]);
      odd.at[lane] = stored_accumulator(first[2 * lane + 1]);
    }
    store_lanes(warp, registers[2 * i].slot, even, lanes);
    store_lanes(warp, registers[2 * i + 1].slot, odd, lanes);
  }
}

// Adds exact integer products to the accumulators; wraps or saturates.
inline void add_exact(const std::int32_t* products, std::size_t count, bool saturate, std::int32_t* sums) {
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t sum = std::int64_t{sums[i]} + products[i];
    if (saturate) sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
    sums[i] = static_cast<std::int32_t>(sum);
  }
}

}  // namespace fusec::emulator
