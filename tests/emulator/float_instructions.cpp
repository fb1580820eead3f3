// Floats of 64, 32 and 16 bits: operands whose results follow from the ISA's text, worked out by hand.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "emulator/one_instruction.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

TEST_CASE("float32 arithmetic, to nearest and otherwise") {
  const float tiny = 0x1p-149f, small = 0x1p-126f, eps = 0x1p-24f;
  CHECK(f32("add.f32", {1, eps}) == bits_of(1.0f));
  CHECK(f32("add.rp.f32", {1, eps}) == 0x3f800001);
  CHECK(f32("add.rm.f32", {1, -eps}) == 0x3f7fffff);
  CHECK(f32("add.rz.f32", {1, -eps / 2}) == 0x3f7fffff);
  CHECK(f32("add.rz.f32", {-1, eps / 4}) == 0xbf7fffff);
  CHECK(f32("add.rm.f32", {1, -1}) == kNegativeZero);
  CHECK(f32("add.f32", {1, -1}) == 0);
  CHECK(f32("sub.rn.f32", {3, 1}) == bits_of(2.0f));
  CHECK(f32("mul.rn.f32", {0x1p-100f, 0x1p-49f}) == 1);
  CHECK(f32("mul.ftz.f32", {0x1p-100f, 0x1p-49f}) == 0);
  CHECK(f32("mul.ftz.f32", {tiny, 0x1p100f}) == 0);
  CHECK(f32("mul.rz.f32", {0x1p127f, 4}) == 0x7f7fffff);
  CHECK(f32("mul.f32", {0x1p127f, -4}) == 0xff800000);
  CHECK(f32("add.ftz.f32", {small, -tiny}) == bits_of(small));
  CHECK(f32("add.sat.f32", {3, 1}) == bits_of(1.0f));
  CHECK(f32("add.sat.f32", {-3, 1}) == 0);
  CHECK(f32("mul.sat.f32", {std::nanf(""), 1}) == 0);
  // Fused: the product's low bits survive.
  CHECK(f32("fma.rn.f32", {1 + 0x1p-23f, 1 - 0x1p-23f, -1}) == bits_of(-0x1p-46f));
  CHECK(f32("fma.rn.f32", {1 + 0x1p-12f, 1 + 0x1p-12f, 0x1p-60f}) == bits_of(1 + 0x1p-11f + 0x1p-23f));
  CHECK(f32("fma.rn.f32", {1 + 0x1p-12f, 1 + 0x1p-12f, -0x1p-60f}) == bits_of(1 + 0x1p-11f));
  CHECK(f32("fma.rm.f32", {1, 1, -1}) == kNegativeZero);
  CHECK(f32("fma.rz.f32", {1, 1, eps}) == bits_of(1.0f));
  CHECK(f32("div.rn.f32", {1, 3}) == 0x3eaaaaab);
  CHECK(f32("div.rz.f32", {1, 3}) == 0x3eaaaaaa);
  CHECK(f32("div.rp.f32", {-1, 3}) == 0xbeaaaaaa);
  CHECK(f32("div.rn.f32", {1, 0}) == kInfinity);
  CHECK(f32("div.rn.f32", {0, 0}) == kNan);
  CHECK(f32("rcp.rn.f32", {3}) == 0x3eaaaaab);
  CHECK(f32("rcp.rp.f32", {3}) == 0x3eaaaaab);
  CHECK(f32("rcp.rm.f32", {3}) == 0x3eaaaaaa);
  CHECK(f32("sqrt.rn.f32", {2}) == 0x3fb504f3);
  CHECK(f32("sqrt.rp.f32", {2}) == 0x3fb504f4);
  CHECK(f32("sqrt.rn.f32", {-1}) == kNan);
  CHECK(f32("sqrt.rn.f32", {-0.0f}) == kNegativeZero);
  CHECK(apply("add.f32", "b32", {0xffc00123, bits_of(1.0f)}) == kNan);
}

TEST_CASE("float32 approximate functions") {
  const float pi = 3.14159265f;
  const auto near = [](std::uint64_t bits, double expected) {
    CHECK(float_of(static_cast<std::uint32_t>(bits)) == doctest::Approx(expected).epsilon(1e-6));
  };
  near(f32("sin.approx.f32", {pi / 6}), 0.5);
  near(f32("cos.approx.f32", {pi / 3}), 0.5);
  near(f32("ex2.approx.ftz.f32", {3.5f}), std::exp2(3.5));
  near(f32("lg2.approx.f32", {10}), std::log2(10.0));
  near(f32("tanh.approx.f32", {0.5f}), std::tanh(0.5));
  near(f32("rsqrt.approx.f32", {4}), 0.5);
  near(f32("rcp.approx.ftz.f32", {4}), 0.25);
  near(f32("sqrt.approx.f32", {9}), 3);
  near(f32("div.full.f32", {1, 3}), 1 / 3.0);
  near(f32("div.approx.f32", {1, 3}), 1 / 3.0);
  CHECK(f32("div.approx.f32", {1, 0x1.8p126f}) == 0);
  CHECK(f32("ex2.approx.ftz.f32", {-140}) == 0);
  CHECK(f32("ex2.approx.f32", {-140}) == bits_of(0x1p-140f));
  CHECK(f32("lg2.approx.f32", {0}) == 0xff800000);
  CHECK(f32("lg2.approx.ftz.f32", {0x1p-140f}) == 0xff800000);
  CHECK(f32("rcp.approx.f32", {-0.0f}) == 0xff800000);
  CHECK(f32("rsqrt.approx.ftz.f32", {0x1p-140f}) == kInfinity);
  CHECK(f32("rsqrt.approx.f32", {-1}) == kNan);
  CHECK(f32("ex2.approx.f32", {-std::numeric_limits<float>::infinity()}) == 0);
}

TEST_CASE("float64 arithmetic") {
  CHECK(f64("add.f64", {1, 0x1p-53}) == bits_of(1.0));
  CHECK(f64("add.rp.f64", {1, 0x1p-53}) == bits_of(1 + 0x1p-52));
  CHECK(f64("mul.rz.f64", {0x1p1000, 0x1p1000}) == bits_of(std::numeric_limits<double>::max()));
  CHECK(f64("fma.rn.f64", {1 + 0x1p-52, 1 - 0x1p-52, -1}) == bits_of(-0x1p-104));
  CHECK(f64("div.rn.f64", {1, 3}) == bits_of(1 / 3.0));
  CHECK(f64("div.rp.f64", {1, 3}) == bits_of(std::nextafter(1 / 3.0, 1)));
  CHECK(f64("sqrt.rn.f64", {2}) == bits_of(std::sqrt(2.0)));
  CHECK(f64("rcp.rn.f64", {3}) == bits_of(1 / 3.0));
  CHECK(f64("min.f64", {1, -1}) == bits_of(-1.0));
  CHECK(f64("neg.f64", {1}) == bits_of(-1.0));
  CHECK(f64("abs.f64", {-1}) == bits_of(1.0));
  CHECK(f64("copysign.f64", {-1, 3}) == bits_of(-3.0));
}

TEST_CASE("minimum, maximum and signs of float32") {
  const float nan = std::nanf("");
  CHECK(f32("min.f32", {1, nan}) == bits_of(1.0f));
  CHECK(f32("max.f32", {nan, -1}) == bits_of(-1.0f));
  CHECK(f32("max.f32", {nan, nan}) == kNan);
  CHECK(f32("max.NaN.f32", {nan, -1}) == kNan);
  CHECK(f32("min.f32", {0.0f, -0.0f}) == kNegativeZero);
  CHECK(f32("max.f32", {-0.0f, 0.0f}) == 0);
  CHECK(f32("max.ftz.f32", {0x1p-140f, -1}) == 0);
  CHECK(f32("min.xorsign.abs.f32", {-2, 3}) == bits_of(-2.0f));
  CHECK(f32("max.f32", {1, 5, 3}) == bits_of(5.0f));
  CHECK(f32("abs.f32", {-2}) == bits_of(2.0f));
  CHECK(f32("neg.f32", {0}) == kNegativeZero);
  CHECK(f32("copysign.f32", {-1, 3}) == bits_of(-3.0f));
  CHECK(evaluate("testp.subnormal.f32 %d, %a0", "pred", {{"b32", 1}}) == 1);
  CHECK(evaluate("testp.normal.f32 %d, %a0", "pred", {{"b32", 1}}) == 0);
  CHECK(evaluate("testp.infinite.f32 %d, %a0", "pred", {{"b32", kInfinity}}) == 1);
  CHECK(evaluate("testp.notanumber.f64 %d, %a0", "pred", {{"b64", bits_of(std::nan(""))}}) == 1);
  CHECK(evaluate("testp.finite.f32 %d, %a0", "pred", {{"b32", 0}}) == 1);
}

TEST_CASE("float16 and bfloat16") {
  const auto half = [](const std::string& op, const std::vector<std::uint64_t>& values) {
    return apply(op, "b16", values);
  };
  CHECK(half("add.f16", {0x3c00, 0x1000}) == 0x3c00);  // 1 + 2^-11: a tie, to even
  CHECK(half("add.f16", {0x3c01, 0x1000}) == 0x3c02);
  CHECK(half("add.f16", {0x7bff, 0x7bff}) == 0x7c00);
  CHECK(half("add.sat.f16", {0x3c00, 0x3c00}) == 0x3c00);
  CHECK(half("sub.f16", {0x3c00, 0x3c00}) == 0);
  CHECK(half("mul.f16", {0x0400, 0x3800}) == 0x0200);  // into the subnormals
  CHECK(half("mul.ftz.f16", {0x0400, 0x3800}) == 0);
  CHECK(half("fma.rn.f16", {0x3c01, 0x3c01, 0xbc00}) == 0x1800);  // (1 + 2^-10)^2 - 1 = 2^-9 + 2^-20, a tie
  CHECK(half("fma.rn.relu.f16", {0x3c00, 0xbc00, 0}) == 0);
  CHECK(half("min.f16", {0x7e00, 0x3c00}) == 0x3c00);
  CHECK(half("max.NaN.f16", {0x7e00, 0x3c00}) == 0x7fff);
  CHECK(half("min.f16", {0x0000, 0x8000}) == 0x8000);
  CHECK(half("abs.f16", {0xbc00}) == 0x3c00);
  CHECK(half("neg.f16", {0x3c00}) == 0xbc00);
  CHECK(half("ex2.approx.f16", {0x4000}) == 0x4400);
  CHECK(half("tanh.approx.f16", {0}) == 0);
  CHECK(half("fma.rn.bf16", {0x3f80, 0x3f80, 0x3f80}) == 0x4000);
  CHECK(half("add.bf16", {0x3f80, 0x3b80}) == 0x3f80);  // 1 + 2^-8: a tie
  CHECK(half("max.bf16", {0x3f80, 0xbf80}) == 0x3f80);
  CHECK(half("mul.bf16", {0x7f7f, 0x4000}) == 0x7f80);
  CHECK(u32("add.f16x2", {0x3c003c00, 0x40003c00}) == 0x42004000);
  CHECK(u32("fma.rn.f16x2", {0x3c004000, 0x40004000, 0x3c003c00}) == 0x42004500);
  CHECK(u32("mul.bf16x2", {0x40003f80, 0x40004000}) == 0x40804000);
  CHECK(u32("max.bf16x2", {0xbf803f80, 0x3f80bf80}) == 0x3f803f80);
  CHECK(u32("neg.f16x2", {0x3c00bc00}) == 0xbc003c00);
  CHECK(evaluate("fma.rn.f32.f16 %d, %a0, %a1, %a2", "b32",
                 {{"b16", 0x4000}, {"b16", 0x4200}, {"b32", bits_of(1.0f)}}) == bits_of(7.0f));
}
