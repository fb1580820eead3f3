// A tensor in host memory: dense, row-major, 4-bit values two to a byte with the low nibble first. The reference device
// computes with these, and files are read into them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/dtype.h"
#include "ir/float_formats.h"

namespace fusec {

struct HostTensor {
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  HostTensor() = default;
  // All zeros. Throws Error(kEnvironment) when there is not enough memory.
  HostTensor(DType element, std::vector<std::int64_t> dimensions);

  std::int64_t size() const;  // elements
  bool operator==(const HostTensor&) const = default;

  // The stored bits of element i, in the low bits.
  std::uint64_t raw(std::int64_t i) const;
  void set_raw(std::int64_t i, std::uint64_t stored);

  // An element as a double (64-bit integers are rounded) or as an int64 (uint64 by its bits, floats truncated).
  double real(std::int64_t i) const;
  std::int64_t integer(std::int64_t i) const;
  // Floats are rounded to nearest even; a float put into an integer tensor is truncated; integers wrap.
  void set_real(std::int64_t i, double value, Overflow overflow = Overflow::kNonFinite);
  void set_integer(std::int64_t i, std::int64_t value);
};

// Product of the dimensions. Throws Error(kInput) if it overflows 63 bits.
std::int64_t element_count(const std::vector<std::int64_t>& shape);

}  // namespace fusec
