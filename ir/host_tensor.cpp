#include "ir/host_tensor.h"

#include <cstring>
#include <new>
#include <stdexcept>

#include "ir/budget.h"
#include "ir/error.h"

namespace fusec {
namespace {

template <class T>
std::uint64_t read_bits(const std::vector<std::byte>& bytes, std::int64_t i) {
  T stored;
  std::memcpy(&stored, bytes.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return stored;
}

template <class T>
void write_bits(std::vector<std::byte>& bytes, std::int64_t i, std::uint64_t value) {
  const auto stored = static_cast<T>(value);
  std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(T), &stored, sizeof(T));
}

}  // namespace

std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(count, extent, &count))
      throw Error(ErrorKind::kInput, "a tensor's element count overflows 63 bits");
  return count;
}

HostTensor::HostTensor(DType element, std::vector<std::int64_t> dimensions)
    : dtype(element), shape(std::move(dimensions)) {
  try {
    const auto size_in_bytes = static_cast<std::size_t>(packed_bytes(dtype, size()));
    require_memory(size_in_bytes);
    bytes.resize(size_in_bytes);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::kEnvironment, "no memory for a tensor of " + std::to_string(size()) + " elements");
  } catch (const std::length_error&) {
    throw Error(ErrorKind::kEnvironment, "no memory for a tensor of " + std::to_string(size()) + " elements");
  }
}

std::int64_t HostTensor::size() const {
  return element_count(shape);
}

std::uint64_t HostTensor::raw(std::int64_t i) const {
  switch (bits(dtype)) {
    case 64:
      return read_bits<std::uint64_t>(bytes, i);
    case 32:
      return read_bits<std::uint32_t>(bytes, i);
    case 16:
      return read_bits<std::uint16_t>(bytes, i);
    case 8:
      return read_bits<std::uint8_t>(bytes, i);
    default:
      return (read_bits<std::uint8_t>(bytes, i / 2) >> (i % 2 * 4)) & 0xF;
  }
}

void HostTensor::set_raw(std::int64_t i, std::uint64_t stored) {
  switch (bits(dtype)) {
    case 64:
      return write_bits<std::uint64_t>(bytes, i, stored);
    case 32:
      return write_bits<std::uint32_t>(bytes, i, stored);
    case 16:
      return write_bits<std::uint16_t>(bytes, i, stored);
    case 8:
      return write_bits<std::uint8_t>(bytes, i, stored);
    default: {
      const std::int64_t shift = i % 2 * 4;
      const std::uint64_t other = read_bits<std::uint8_t>(bytes, i / 2) & (std::uint64_t{0xF0} >> shift);
      return write_bits<std::uint8_t>(bytes, i / 2, other | ((stored & 0xF) << shift));
    }
  }
}

double HostTensor::real(std::int64_t i) const {
  if (is_float(dtype)) return decode_float(dtype, raw(i));
  const std::int64_t value = integer(i);
  return dtype == DType::kUInt64 ? static_cast<double>(static_cast<std::uint64_t>(value)) : static_cast<double>(value);
}

std::int64_t HostTensor::integer(std::int64_t i) const {
  if (is_float(dtype)) return truncate_to_integer(DType::kInt64, real(i));
  return wrap_integer(dtype, static_cast<std::int64_t>(raw(i)));
}

void HostTensor::set_real(std::int64_t i, double value, Overflow overflow) {
  if (is_float(dtype))
    set_raw(i, encode_float(dtype, value, overflow));
  else
    set_integer(i, truncate_to_integer(dtype, value));
}

void HostTensor::set_integer(std::int64_t i, std::int64_t value) {
  if (dtype == DType::kFloat32)  // rounds once, not through double
    set_real(i, static_cast<float>(value));
  else if (is_float(dtype))
    set_real(i, static_cast<double>(value));
  else
    set_raw(i, static_cast<std::uint64_t>(wrap_integer(dtype, value)));
}

}  // namespace fusec
