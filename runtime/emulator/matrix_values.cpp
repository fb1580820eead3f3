#include "runtime/emulator/matrix_values.h"

#include <array>
#include <cstring>

#include "runtime/emulator/matrix_element.h"

namespace fusec::emulator {
namespace {

constexpr int kColumns = 8;      // of b
constexpr int kMaxK = 256;       // single bits
constexpr int kChunkBytes = 16;  // bytes

// Raw is an unsigned integer of the element's width. The innermost loop has a fixed length, so the compiler vectorizes
// it.
template <class Raw, class T, class Convert>
void convert_rows(const std::byte* from, int rows, int row_bytes, T* out, int stride, Convert value_of) {
  constexpr int kPer = kChunkBytes / static_cast<int>(sizeof(Raw));
  for (int row = 0; row < rows; ++row) {
    T* to = out + static_cast<std::ptrdiff_t>(row) * stride;
    for (int at = 0; at < row_bytes; at += kChunkBytes, from += kChunkBytes, to += kPer) {
      Raw raw[kPer];
      std::memcpy(raw, from, sizeof(raw));
      for (int i = 0; i < kPer; ++i) to[i] = value_of(raw[i]);
    }
  }
}

using ByteValues = std::array<float, 256>;

ByteValues values_of_bytes(Type type) {
  ByteValues values{};
  for (std::uint32_t raw = 0; raw < 256; ++raw) values[raw] = element_value<float>(type, raw);
  return values;
}

template <class T>
void read_narrow_rows(Type type, const std::byte* from, int rows, int row_bytes, T* out, int stride) {
  const int width = bits(type), per_byte = 8 / width;
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < row_bytes * per_byte; ++i) {
      const auto byte = std::to_integer<unsigned>(from[row * row_bytes + i / per_byte]);
      const unsigned raw = byte >> (i % per_byte * width) & ((1u << width) - 1);
      out[static_cast<std::ptrdiff_t>(row) * stride + i] = element_value<T>(type, raw);
    }
  }
}

// A vector of 16 bytes, which every 64-bit machine supports.
template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(16)));
};
template <class T>
using Vector = typename VectorOf<T>::Type;

// Multiplies kRows rows of `a` by the k x kColumns matrix b. The accumulators stay in registers.
template <int kRows, class T>
void add_rows(const T* a, const T* b, T* sums, int k) {
  constexpr int kVectors = kColumns * static_cast<int>(sizeof(T)) / 16;
  Vector<T> total[kRows][kVectors];
  std::memcpy(total, sums, sizeof(total));
  for (int p = 0; p < k; ++p) {
    Vector<T> row[kVectors];
    std::memcpy(row, b + static_cast<std::ptrdiff_t>(p) * kColumns, sizeof(row));
    for (int i = 0; i < kRows; ++i) {
      const T factor = a[i * k + p];
      for (int v = 0; v < kVectors; ++v) total[i][v] += factor * row[v];
    }
  }
  std::memcpy(sums, total, sizeof(total));
}

}  // namespace

template <class T>
void read_rows(Type type, const std::byte* from, int rows, int row_bytes, T* out, int stride) {
  const auto convert = [&]<class Raw>(Raw, auto value_of) {
    convert_rows<Raw>(from, rows, row_bytes, out, stride, value_of);
  };
  const auto from_table = [&](const ByteValues& values) {
    convert(std::uint8_t{}, [&values](std::uint8_t raw) { return static_cast<T>(values[raw]); });
  };
  switch (type) {
    case Type::kF16:
      return convert(std::uint16_t{}, [](std::uint16_t raw) { return static_cast<T>(half_to_float(raw)); });
    case Type::kBF16:
      return convert(std::uint16_t{}, [](std::uint16_t raw) { return static_cast<T>(bfloat_to_float(raw)); });
    case Type::kTF32:
      return convert(std::uint32_t{}, [](std::uint32_t raw) { return element_value<T>(Type::kTF32, raw); });
    case Type::kF64:
      return convert(std::uint64_t{}, [](std::uint64_t raw) { return element_value<T>(Type::kF64, raw); });
    case Type::kS8:
      return convert(std::uint8_t{}, [](std::uint8_t raw) { return static_cast<T>(static_cast<std::int8_t>(raw)); });
    case Type::kU8:
      return convert(std::uint8_t{}, [](std::uint8_t raw) { return static_cast<T>(raw); });
    case Type::kE4M3: {
      static const ByteValues kValues = values_of_bytes(Type::kE4M3);
      return from_table(kValues);
    }
    case Type::kE5M2: {
      static const ByteValues kValues = values_of_bytes(Type::kE5M2);
      return from_table(kValues);
    }
    default:
      return read_narrow_rows(type, from, rows, row_bytes, out, stride);
  }
}

template <class T>
void add_product(const T* a, const T* b, T* sums, int m, int k) {
  constexpr int kRows = sizeof(T) == 8 ? 2 : 4;  // as many accumulators as fit into the vector registers
  T rows_of_b[kMaxK * kColumns];
  for (int p = 0; p < k; ++p) {
    for (int j = 0; j < kColumns; ++j) rows_of_b[p * kColumns + j] = b[j * k + p];
  }
  for (int i = 0; i < m; i += kRows) add_rows<kRows>(a + i * k, rows_of_b, sums + i * kColumns, k);
}

template void read_rows(Type, const std::byte*, int, int, float*, int);
template void read_rows(Type, const std::byte*, int, int, double*, int);
template void read_rows(Type, const std::byte*, int, int, std::int32_t*, int);
template void add_product(const float*, const float*, float*, int, int);
template void add_product(const double*, const double*, double*, int, int);
template void add_product(const std::int32_t*, const std::int32_t*, std::int32_t*, int, int);

}  // namespace fusec::emulator
