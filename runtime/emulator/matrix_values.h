// The arithmetic of tensor core instructions: decodes packed matrix elements to numbers, and multiplies matrices. The
// instructions spend most of their time here, so both functions work on 16 bytes at once. T is float, double or
// std::int32_t.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/emulator/ptx_types.h"

namespace fusec::emulator {

// Decodes `rows` consecutive rows of `row_bytes` bytes each (a multiple of 16). Rows of `out` are `stride` numbers
// apart. Elements are packed from the lowest bit of the first byte on.
template <class T>
void read_rows(Type type, const std::byte* from, int rows, int row_bytes, T* out, int stride);

// sums (m x 8) += a (m x k) * b, with b given transposed, as 8 x k. m is a multiple of 8, k at most 256. Products are
// rounded and then added one after another along k. The ISA leaves the order open; this order is the same on every
// machine.
template <class T>
void add_product(const T* a, const T* b, T* sums, int m, int k);

}  // namespace fusec::emulator
