// Matrices of numbers, as the tensor instructions multiply them: elements side by side in memory become numbers, and
// products of matrices are added to sums. Those instructions spend their time here, so that both work on 16 bytes at
// once. T is float, double or std::int32_t.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/emulator/ptx_types.h"

namespace fusec::emulator {

// `rows` rows of `row_bytes` bytes, a multiple of 16, one behind the other; out's rows are `stride` numbers apart.
// Elements are packed from the lowest bit of the first byte on.
template <class T>
void read_rows(Type type, const std::byte* from, int rows, int row_bytes, T* out, int stride);

// sums (m x 8) += a (m x k) times b, which comes transposed, as 8 x k; m is a multiple of 8, k at most 256. An
// element's products are added one after the other along k, and each is rounded before: the ISA leaves the order open,
// ours is the same on every machine.
template <class T>
void add_product(const T* a, const T* b, T* sums, int m, int k);

}  // namespace fusec::emulator
