#include "ir/float_formats.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace fusec;

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr DType kSmall[] = {DType::kFloat16, DType::kBFloat16, DType::kFloat8E4M3FN, DType::kFloat8E5M2,
                            DType::kFloat4E2M1FN};
}  // namespace

TEST_CASE("every stored value comes back as its own bits") {
  for (const DType dtype : kSmall) {
    for (std::uint64_t stored = 0; stored < (std::uint64_t{1} << bits(dtype)); ++stored) {
      const double value = decode_float(dtype, stored);
      if (std::isnan(value))
        CHECK(std::isnan(round_to_float(dtype, value)));
      else
        CHECK(encode_float(dtype, value) == stored);
    }
  }
  for (std::uint64_t stored = 0; stored < 255; ++stored)
    CHECK(encode_float(DType::kFloat8E8M0FNU, decode_float(DType::kFloat8E8M0FNU, stored)) == stored);
  CHECK(std::isnan(decode_float(DType::kFloat8E8M0FNU, 255)));
}

TEST_CASE("the middle between neighbours goes to the even one, anything else to the nearest") {
  for (const DType dtype : kSmall) {
    const auto greatest = encode_float(dtype, greatest_finite(dtype));
    for (std::uint64_t stored = 0; stored < greatest; ++stored) {
      const double low = decode_float(dtype, stored), high = decode_float(dtype, stored + 1);
      const double middle = (low + high) / 2;
      CHECK(encode_float(dtype, middle) == (stored % 2 == 0 ? stored : stored + 1));
      CHECK(encode_float(dtype, std::nextafter(middle, 0)) == stored);
      CHECK(encode_float(dtype, std::nextafter(middle, kInfinity)) == stored + 1);
    }
  }
}

TEST_CASE("beyond the greatest finite value") {
  CHECK(greatest_finite(DType::kFloat16) == 65504);
  CHECK(greatest_finite(DType::kFloat8E4M3FN) == 448);
  CHECK(greatest_finite(DType::kFloat8E5M2) == 57344);
  CHECK(greatest_finite(DType::kFloat4E2M1FN) == 6);
  CHECK(greatest_finite(DType::kFloat8E8M0FNU) == std::ldexp(1.0, 127));
  CHECK(round_to_float(DType::kFloat16, 65519.9) == 65504);
  CHECK(round_to_float(DType::kFloat16, 65520) == kInfinity);
  CHECK(round_to_float(DType::kFloat16, -1e300) == -kInfinity);
  CHECK(round_to_float(DType::kFloat8E4M3FN, 464) == 448);
  CHECK(std::isnan(round_to_float(DType::kFloat8E4M3FN, 465)));
  CHECK(round_to_float(DType::kFloat8E4M3FN, -1e9, Overflow::kSaturate) == -448);
  CHECK(round_to_float(DType::kFloat8E5M2, kInfinity, Overflow::kSaturate) == 57344);
  CHECK(round_to_float(DType::kFloat4E2M1FN, -100) == -6);
  CHECK(round_to_float(DType::kFloat32, 1e39) == kInfinity);
}

TEST_CASE("integers wrap and truncate") {
  CHECK(wrap_integer(DType::kInt8, 200) == -56);
  CHECK(wrap_integer(DType::kUInt4, -1) == 15);
  CHECK(wrap_integer(DType::kInt4, 8) == -8);
  CHECK(wrap_integer(DType::kBool, 256) == 1);
  CHECK(truncate_to_integer(DType::kInt32, -2.9) == -2);
  CHECK(truncate_to_integer(DType::kInt8, 1e9) == 127);
  CHECK(truncate_to_integer(DType::kUInt8, -3) == 0);
  CHECK(truncate_to_integer(DType::kInt64, 1e30) == std::numeric_limits<std::int64_t>::max());
}
