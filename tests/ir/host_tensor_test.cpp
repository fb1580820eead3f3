#include "ir/host_tensor.h"

#include <doctest/doctest.h>

using namespace fusec;

TEST_CASE("4-bit values lie two to a byte, low nibble first") {
  HostTensor t(DType::kInt4, {2, 2});
  REQUIRE(t.bytes.size() == 2);
  for (std::int64_t i = 0; i < 4; ++i) t.set_integer(i, i - 2);
  CHECK(t.bytes[0] == std::byte{0xFE});
  CHECK(t.bytes[1] == std::byte{0x10});
  for (std::int64_t i = 0; i < 4; ++i) CHECK(t.integer(i) == i - 2);
  t.set_integer(0, 7);
  CHECK(t.integer(1) == -1);
}

TEST_CASE("elements of every dtype keep small values") {
  for (const DTypeInfo& dtype : all_dtypes()) {
    if (dtype.dtype == DType::kFloat8E8M0FNU) continue;
    HostTensor t(dtype.dtype, {4});
    for (std::int64_t i = 0; i < 4; ++i) t.set_real(i, dtype.dtype == DType::kBool ? i % 2 : static_cast<double>(i));
    for (std::int64_t i = 0; i < 4; ++i) {
      CHECK(t.real(i) == (dtype.dtype == DType::kBool ? i % 2 : i));
      CHECK(t.integer(i) == (dtype.dtype == DType::kBool ? i % 2 : i));
    }
  }
}

TEST_CASE("64-bit integers keep all bits") {
  HostTensor t(DType::kInt64, {1});
  t.set_integer(0, 9007199254740993);
  CHECK(t.integer(0) == 9007199254740993);
  HostTensor u(DType::kUInt64, {1});
  u.set_integer(0, -1);
  CHECK(u.real(0) == 18446744073709551615.0);
}

TEST_CASE("a scalar has one element, an empty tensor none") {
  CHECK(HostTensor(DType::kFloat16, {}).bytes.size() == 2);
  CHECK(HostTensor(DType::kFloat16, {3, 0}).bytes.empty());
}
