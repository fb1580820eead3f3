// Each instruction family on operands whose results follow from the ISA's text, worked out by hand.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "emulator/harness.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

constexpr std::uint64_t kNan = 0x7fffffff, kInfinity = 0x7f800000, kNegativeZero = 0x80000000;

// `op d, a0, a1, ...` on values of one type.
std::uint64_t apply(const std::string& op, const std::string& type, const std::vector<std::uint64_t>& values,
                    const std::string& result = {}) {
  std::string text = op + " %d";
  std::vector<std::pair<std::string, std::uint64_t>> operands;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += fmt::format(", %a{}", i);
    operands.emplace_back(type, values[i]);
  }
  return evaluate(text, result.empty() ? type : result, operands);
}

std::uint64_t f32(const std::string& op, const std::vector<float>& values) {
  std::vector<std::uint64_t> raw;
  for (float value : values) raw.push_back(bits_of(value));
  return apply(op, "b32", raw);
}
std::uint64_t f64(const std::string& op, const std::vector<double>& values) {
  std::vector<std::uint64_t> raw;
  for (double value : values) raw.push_back(bits_of(value));
  return apply(op, "b64", raw);
}
std::uint64_t u32(const std::string& op, const std::vector<std::uint64_t>& values) {
  return apply(op, "b32", values);
}
std::uint64_t u64(const std::string& op, const std::vector<std::uint64_t>& values) {
  return apply(op, "b64", values);
}
std::uint64_t cvt(const std::string& op, const std::string& to, const std::string& from, std::uint64_t value) {
  return evaluate(op + " %d, %a0", to, {{from, value}});
}

}  // namespace

TEST_CASE("integer arithmetic") {
  CHECK(u32("add.u32", {0xffffffff, 2}) == 1);
  CHECK(u32("sub.s32", {1, 2}) == 0xffffffff);
  CHECK(u32("add.sat.s32", {0x7fffffff, 1}) == 0x7fffffff);
  CHECK(u32("sub.sat.s32", {0x80000000, 1}) == 0x80000000);
  CHECK(u64("add.s64", {~std::uint64_t{0}, 1}) == 0);
  CHECK(apply("add.s16", "b16", {0xffff, 3}) == 2);
  CHECK(u32("mul.lo.s32", {0x10001, 0x10001}) == 0x20001);
  CHECK(u32("mul.hi.u32", {0xffffffff, 0xffffffff}) == 0xfffffffe);
  CHECK(u32("mul.hi.s32", {0xffffffff, 0xffffffff}) == 0);
  CHECK(u64("mul.hi.u64", {~std::uint64_t{0}, 16}) == 15);
  CHECK(apply("mul.wide.s32", "b32", {0xffffffff, 5}, "b64") == ~std::uint64_t{4});
  CHECK(apply("mul.wide.u32", "b32", {0xffffffff, 5}, "b64") == 0x4fffffffb);
  CHECK(apply("mul.wide.u16", "b16", {0xffff, 0xffff}, "b32") == 0xfffe0001);
  CHECK(u32("mad.lo.s32", {3, 4, 5}) == 17);
  CHECK(evaluate("mad.wide.s32 %d, %a0, %a1, %a2", "b64", {{"b32", 0xfffffffe}, {"b32", 3}, {"b64", 10}}) == 4);
  CHECK(u32("mad.hi.u32", {0x80000000, 4, 7}) == 9);
  CHECK(u32("mul24.lo.u32", {0xff000003, 0xff000005}) == 15);
  CHECK(u32("mul24.lo.s32", {0x00ffffff, 5}) == 0xfffffffb);
  CHECK(u32("mul24.hi.u32", {0x00800000, 0x00000200}) == 0x10000);
  CHECK(u32("div.s32", {0xfffffff9, 2}) == 0xfffffffd);
  CHECK(u32("div.u32", {7, 0}) == 0xffffffff);
  CHECK(u32("rem.s32", {0xfffffff9, 2}) == 0xffffffff);
  CHECK(u64("div.s64", {0x8000000000000000, ~std::uint64_t{0}}) == 0x8000000000000000);
  CHECK(u32("min.s32", {0xffffffff, 1}) == 0xffffffff);
  CHECK(u32("min.u32", {0xffffffff, 1}) == 1);
  CHECK(u32("max.s32", {0xffffffff, 1}) == 1);
  CHECK(u32("max.relu.s32", {0xffffffff, 0xfffffff0}) == 0);
  CHECK(u32("abs.s32", {0xffffffff}) == 1);
  CHECK(u32("neg.s32", {5}) == 0xfffffffb);
  CHECK(u32("sad.s32", {0xffffffff, 4, 10}) == 15);
  CHECK(u32("sad.u32", {4, 0xffffffff, 10}) == 5);
  CHECK(u32("dp4a.s32.s32", {0x01ff0203, 0x02030405, 100}) == 100 + 1 * 2 - 1 * 3 + 2 * 4 + 3 * 5);
  CHECK(u32("dp4a.u32.u32", {0xff000000, 0xff000000, 1}) == 65026);
  CHECK(u32("dp2a.lo.s32.s32", {0xffff0002, 0x00000304, 0}) == 2 * 4 - 3);
  CHECK(u32("dp2a.hi.u32.u32", {0x00010002, 0x03040000, 0}) == 2 * 4 + 3);
  CHECK(u32("add.u16x2", {0xffff0001, 0x00020003}) == 0x00010004);
  CHECK(u32("min.s16x2", {0xffff0001, 0x00020003}) == 0xffff0001);
}

TEST_CASE("carries") {
  const std::string sum = "add.cc.u32 %d, %a0, %a1;\naddc.u32 %d, %a2, %a3";
  const auto high = [&](std::uint64_t a, std::uint64_t b) {
    return evaluate(sum, "b32", {{"b32", a}, {"b32", b}, {"b32", 10}, {"b32", 20}});
  };
  CHECK(high(0xffffffff, 1) == 31);
  CHECK(high(0xfffffffe, 1) == 30);
  CHECK(evaluate("sub.cc.u32 %d, %a0, %a1;\nsubc.u32 %d, %a2, %a3", "b32",
                 {{"b32", 1}, {"b32", 2}, {"b32", 30}, {"b32", 20}}) == 9);
  CHECK(evaluate("mad.lo.cc.u32 %d, %a0, %a1, %a2;\nmadc.hi.u32 %d, %a0, %a1, 0", "b32",
                 {{"b32", 0xffffffff}, {"b32", 0xffffffff}, {"b32", 0xffffffff}}) == 0xffffffff);
}

TEST_CASE("bits") {
  CHECK(u32("and.b32", {0xf0f0, 0xff00}) == 0xf000);
  CHECK(u32("or.b32", {0xf0f0, 0x0f00}) == 0xfff0);
  CHECK(u64("xor.b64", {0xff, 0xf0}) == 0x0f);
  CHECK(u32("not.b32", {0}) == 0xffffffff);
  CHECK(u32("cnot.b32", {5}) == 0);
  CHECK(u32("cnot.b32", {0}) == 1);
  CHECK(u32("shl.b32", {1, 31}) == 0x80000000);
  CHECK(u32("shl.b32", {1, 32}) == 0);
  CHECK(u32("shr.u32", {0x80000000, 31}) == 1);
  CHECK(u32("shr.s32", {0x80000000, 40}) == 0xffffffff);
  CHECK(evaluate("shr.u64 %d, %a0, %a1", "b64", {{"b64", 0x8000000000000000}, {"b32", 63}}) == 1);
  CHECK(u32("shf.l.wrap.b32", {0x80000000, 0x1, 33}) == 3);
  CHECK(u32("shf.r.wrap.b32", {0x80000000, 0x1, 4}) == 0x18000000);
  CHECK(u32("shf.l.clamp.b32", {0x12345678, 0x9abcdef0, 40}) == 0x12345678);
  CHECK(u32("shf.r.clamp.b32", {0x12345678, 0x9abcdef0, 40}) == 0x9abcdef0);
  CHECK(evaluate("lop3.b32 %d, %a0, %a1, %a2, 0x96", "b32", {{"b32", 0xf0}, {"b32", 0xcc}, {"b32", 0xaa}}) == 0x96);
  CHECK(evaluate("lop3.b32 %d, %a0, %a1, %a2, 0xca", "b32", {{"b32", 0xf0}, {"b32", 0xcc}, {"b32", 0xaa}}) == 0xca);
  CHECK(evaluate("prmt.b32 %d, %a0, %a1, 0x5410", "b32", {{"b32", 0x33221100}, {"b32", 0x77665544}}) == 0x55441100);
  CHECK(evaluate("prmt.b32 %d, %a0, %a1, 0x9bbb", "b32", {{"b32", 0x80221100}, {"b32", 0x77665544}}) == 0x00ffffff);
  CHECK(u32("prmt.b32.f4e", {0x33221100, 0x77665544, 1}) == 0x44332211);
  CHECK(u32("prmt.b32.b4e", {0x33221100, 0x77665544, 1}) == 0x66770011);
  CHECK(u32("prmt.b32.rc8", {0x33221100, 0, 2}) == 0x22222222);
  CHECK(u32("prmt.b32.rc16", {0x33221100, 0, 1}) == 0x33223322);
  CHECK(u32("bfe.u32", {0x12345678, 8, 8}) == 0x56);
  CHECK(u32("bfe.s32", {0x0000f000, 12, 4}) == 0xffffffff);
  CHECK(u32("bfe.s32", {0x80000000, 28, 8}) == 0xfffffff8);
  CHECK(u32("bfe.u32", {0xffffffff, 40, 8}) == 0);
  CHECK(u32("bfe.s32", {0x80000000, 40, 8}) == 0xffffffff);
  CHECK(u32("bfe.s32", {0xffffffff, 3, 0}) == 0);
  CHECK(u32("bfi.b32", {0xff, 0x12345678, 8, 4}) == 0x12345f78);
  CHECK(u32("bfi.b32", {0xff, 0x12345678, 40, 4}) == 0x12345678);
  CHECK(evaluate("bfi.b64 %d, %a0, %a1, 32, 32", "b64", {{"b64", 7}, {"b64", 5}}) == 0x700000005);
  CHECK(u32("popc.b32", {0xf0f0}) == 8);
  CHECK(apply("popc.b64", "b64", {~std::uint64_t{0}}, "b32") == 64);
  CHECK(u32("clz.b32", {0}) == 32);
  CHECK(apply("clz.b64", "b64", {1}, "b32") == 63);
  CHECK(u32("brev.b32", {1}) == 0x80000000);
  CHECK(u64("brev.b64", {3}) == 0xc000000000000000);
  CHECK(u32("bfind.u32", {0x00010000}) == 16);
  CHECK(u32("bfind.s32", {0xffffffff}) == 0xffffffff);
  CHECK(u32("bfind.s32", {0xfffffffe}) == 0);
  CHECK(u32("bfind.shiftamt.u32", {0x00010000}) == 15);
  CHECK(u32("bmsk.clamp.b32", {4, 8}) == 0xff0);
  CHECK(u32("szext.clamp.s32", {0xff, 8}) == 0xffffffff);
  CHECK(u32("szext.clamp.u32", {0xfff, 8}) == 0xff);
  CHECK(u32("fns.b32", {0b10110, 0, 2}) == 2);
  CHECK(evaluate("xor.pred %d, %a0, %a1", "pred", {{"pred", 1}, {"pred", 1}}) == 0);
  CHECK(evaluate("and.pred %d, %a0, !%a1", "pred", {{"pred", 1}, {"pred", 0}}) == 1);
}

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

TEST_CASE("conversions between integers") {
  CHECK(cvt("cvt.u32.u64", "b32", "b64", 0x123456789) == 0x23456789);
  CHECK(cvt("cvt.s64.s32", "b64", "b32", 0xffffffff) == ~std::uint64_t{0});
  CHECK(cvt("cvt.u64.u32", "b64", "b32", 0xffffffff) == 0xffffffff);
  CHECK(cvt("cvt.s32.s8", "b32", "b32", 0x1ff) == 0xffffffff);
  CHECK(cvt("cvt.u32.u8", "b32", "b32", 0x1ff) == 0xff);
  CHECK(cvt("cvt.s8.s32", "b32", "b32", 0x80) == 0xffffff80);  // kept sign-extended in the wide register
  CHECK(cvt("cvt.sat.u8.s32", "b32", "b32", 300) == 255);
  CHECK(cvt("cvt.sat.u8.s32", "b32", "b32", 0xffffffff) == 0);
  CHECK(cvt("cvt.sat.s8.s32", "b32", "b32", 0xffffff00) == 0xffffff80);
  CHECK(cvt("cvt.sat.s32.u32", "b32", "b32", 0xffffffff) == 0x7fffffff);
  CHECK(evaluate("cvt.pack.sat.u8.s32.b32 %d, %a0, %a1, %a2", "b32",
                 {{"b32", 300}, {"b32", 0xffffffff}, {"b32", 0x1234}}) == 0x1234ff00);
  CHECK(evaluate("cvt.pack.sat.s16.s32 %d, %a0, %a1", "b32", {{"b32", 0x12345}, {"b32", 0xffffffff}}) == 0x7fffffff);
}

TEST_CASE("conversions between integers and floats") {
  CHECK(cvt("cvt.rzi.s32.f32", "b32", "b32", bits_of(-2.7f)) == 0xfffffffe);
  CHECK(cvt("cvt.rni.s32.f32", "b32", "b32", bits_of(2.5f)) == 2);
  CHECK(cvt("cvt.rmi.s32.f32", "b32", "b32", bits_of(-2.1f)) == 0xfffffffd);
  CHECK(cvt("cvt.rpi.u32.f32", "b32", "b32", bits_of(2.1f)) == 3);
  CHECK(cvt("cvt.rzi.u32.f32", "b32", "b32", bits_of(-5.0f)) == 0);
  CHECK(cvt("cvt.rzi.s32.f32", "b32", "b32", bits_of(1e20f)) == 0x7fffffff);
  CHECK(cvt("cvt.rzi.s32.f32", "b32", "b32", kNan) == 0);
  CHECK(cvt("cvt.rzi.s64.f64", "b64", "b64", bits_of(std::nan(""))) == 0x8000000000000000);
  CHECK(cvt("cvt.rzi.u8.f32", "b32", "b32", bits_of(300.0f)) == 255);
  CHECK(cvt("cvt.rzi.s64.f64", "b64", "b64", bits_of(-1e300)) == 0x8000000000000000);
  CHECK(cvt("cvt.rn.f32.s32", "b32", "b32", 0x1000001) == bits_of(16777216.0f));
  CHECK(cvt("cvt.rp.f32.s32", "b32", "b32", 0x1000001) == bits_of(16777218.0f));
  CHECK(cvt("cvt.rn.f32.u64", "b32", "b64", 0xffffff8000000001) == bits_of(0x1p64f));
  CHECK(cvt("cvt.rz.f32.u64", "b32", "b64", 0xffffffffffffffff) == 0x5f7fffff);
  CHECK(cvt("cvt.rn.f64.s64", "b64", "b64", 0x20000000000001) == bits_of(9007199254740992.0));
  CHECK(cvt("cvt.rp.f64.u64", "b64", "b64", 0x20000000000001) == bits_of(9007199254740994.0));
  CHECK(cvt("cvt.rn.f16.s32", "b16", "b32", 2049) == 0x6800);
  CHECK(cvt("cvt.rn.bf16.u32", "b16", "b32", 257) == 0x4380);
  CHECK(cvt("cvt.rni.f32.f32", "b32", "b32", bits_of(3.5f)) == bits_of(4.0f));
  CHECK(cvt("cvt.rmi.f32.f32", "b32", "b32", bits_of(-0.5f)) == bits_of(-1.0f));
  CHECK(cvt("cvt.rzi.f64.f64", "b64", "b64", bits_of(-2.5)) == bits_of(-2.0));
  CHECK(cvt("cvt.sat.f32.f32", "b32", "b32", bits_of(2.5f)) == bits_of(1.0f));
  CHECK(cvt("cvt.ftz.f32.f32", "b32", "b32", 1) == 0);
}

TEST_CASE("conversions between floats") {
  CHECK(cvt("cvt.f32.f16", "b32", "b16", 0x0001) == bits_of(0x1p-24f));
  CHECK(cvt("cvt.f32.f16", "b32", "b16", 0xfc00) == 0xff800000);
  CHECK(cvt("cvt.f32.f16", "b32", "b16", 0x7e01) == kNan);
  CHECK(cvt("cvt.rn.f16.f32", "b16", "b32", bits_of(65520.0f)) == 0x7c00);
  CHECK(cvt("cvt.rn.f16.f32", "b16", "b32", bits_of(65519.0f)) == 0x7bff);
  CHECK(cvt("cvt.rz.f16.f32", "b16", "b32", bits_of(1e9f)) == 0x7bff);
  CHECK(cvt("cvt.rn.f16.f32", "b16", "b32", bits_of(0x1p-25f)) == 0);
  CHECK(cvt("cvt.rn.f16.f32", "b16", "b32", bits_of(0x1.8p-25f)) == 1);
  CHECK(cvt("cvt.rn.satfinite.f16.f32", "b16", "b32", bits_of(1e9f)) == 0x7bff);
  CHECK(cvt("cvt.rn.relu.f16.f32", "b16", "b32", bits_of(-1.0f)) == 0);
  CHECK(cvt("cvt.rn.bf16.f32", "b16", "b32", 0x3f808000) == 0x3f80);
  CHECK(cvt("cvt.rn.bf16.f32", "b16", "b32", 0x3f818000) == 0x3f82);
  CHECK(cvt("cvt.rn.bf16.f32", "b16", "b32", 0x7fffffff) == 0x7fff);
  CHECK(cvt("cvt.rz.bf16.f32", "b16", "b32", 0x3f81ffff) == 0x3f81);
  CHECK(cvt("cvt.f32.bf16", "b32", "b16", 0xc040) == bits_of(-3.0f));
  CHECK(cvt("cvt.rna.tf32.f32", "b32", "b32", 0x3f801000) == 0x3f802000);
  CHECK(cvt("cvt.rn.f32.f64", "b32", "b64", bits_of(1 + 0x1p-24)) == bits_of(1.0f));
  CHECK(cvt("cvt.rp.f32.f64", "b32", "b64", bits_of(1 + 0x1p-40)) == 0x3f800001);
  CHECK(cvt("cvt.f64.f32", "b64", "b32", bits_of(0.1f)) == bits_of(static_cast<double>(0.1f)));
  const auto pair = [](const std::string& op, const std::string& to, float upper, float lower) {
    return evaluate(op + " %d, %a0, %a1", to, {{"b32", bits_of(upper)}, {"b32", bits_of(lower)}});
  };
  CHECK(pair("cvt.rn.f16x2.f32", "b32", 1, 2) == 0x3c004000);
  CHECK(pair("cvt.rn.bf16x2.f32", "b32", 1, -2) == 0x3f80c000);
  CHECK(pair("cvt.rn.satfinite.e4m3x2.f32", "b16", 1000, -0.4375f) == 0x7eae);
  CHECK(pair("cvt.rn.satfinite.e4m3x2.f32", "b16", std::nanf(""), 0x1p-9f) == 0x7f01);
  CHECK(pair("cvt.rn.satfinite.e5m2x2.f32", "b16", 1, 1e9f) == 0x3c7b);
  CHECK(pair("cvt.rn.satfinite.relu.e4m3x2.f32", "b16", -1, 1) == 0x0038);
  CHECK(pair("cvt.rn.satfinite.e2m1x2.f32", "b16", 6, -1.5f) == 0x007b);
  CHECK(cvt("cvt.rn.f16x2.e4m3x2", "b32", "b16", 0x3801) == 0x3c001800);
  CHECK(cvt("cvt.rn.f16x2.e5m2x2", "b32", "b16", 0x3cfc) == 0x3c00fc00);
  CHECK(cvt("cvt.rn.satfinite.e4m3x2.f16x2", "b16", "b32", 0x3c007bff) == 0x387e);
}

TEST_CASE("comparisons and selections") {
  const auto setp = [](const std::string& op, const std::string& type, std::uint64_t a, std::uint64_t b) {
    return evaluate(op + " %d, %a0, %a1", "pred", {{type, a}, {type, b}});
  };
  CHECK(setp("setp.lt.s32", "b32", 0xffffffff, 1) == 1);
  CHECK(setp("setp.lt.u32", "b32", 0xffffffff, 1) == 0);
  CHECK(setp("setp.hi.u32", "b32", 0xffffffff, 1) == 1);
  CHECK(setp("setp.eq.b64", "b64", 5, 5) == 1);
  CHECK(setp("setp.ne.s16", "b16", 5, 6) == 1);
  CHECK(setp("setp.eq.f32", "b32", kNan, kNan) == 0);
  CHECK(setp("setp.ne.f32", "b32", kNan, 0) == 0);
  CHECK(setp("setp.neu.f32", "b32", kNan, 0) == 1);
  CHECK(setp("setp.ltu.f32", "b32", kNan, 0) == 1);
  CHECK(setp("setp.lt.f32", "b32", kNegativeZero, 0) == 0);
  CHECK(setp("setp.eq.ftz.f32", "b32", 1, 0) == 1);
  CHECK(setp("setp.num.f32", "b32", 1, kNan) == 0);
  CHECK(setp("setp.nan.f64", "b64", bits_of(1.0), bits_of(std::nan(""))) == 1);
  CHECK(setp("setp.gt.f16", "b16", 0x3c00, 0xbc00) == 1);
  CHECK(setp("setp.le.bf16", "b16", 0x3f80, 0x3f80) == 1);
  CHECK(evaluate("setp.lt.and.s32 %d, %a0, %a1, %a2", "pred", {{"b32", 1}, {"b32", 2}, {"pred", 0}}) == 0);
  CHECK(evaluate("setp.gt.xor.s32 %d|%p5, %a0, %a1, !%a2;\nnot.pred %d, %p5", "pred",
                 {{"b32", 1}, {"b32", 2}, {"pred", 0}}) == 1);
  CHECK(evaluate("setp.gt.f16x2 %d|%p5, %a0, %a1;\nxor.pred %d, %d, %p5", "pred",
                 {{"b32", 0x3c004000}, {"b32", 0x3c003c00}}) == 1);
  CHECK(evaluate("set.lt.u32.f32 %d, %a0, %a1", "b32", {{"b32", bits_of(1.0f)}, {"b32", bits_of(2.0f)}}) == 0xffffffff);
  CHECK(evaluate("set.gt.f32.s32 %d, %a0, %a1", "b32", {{"b32", 1}, {"b32", 0xffffffff}}) == bits_of(1.0f));
  CHECK(evaluate("set.eq.f16x2.f16x2 %d, %a0, %a1", "b32", {{"b32", 0x3c004000}, {"b32", 0x3c003c00}}) == 0x3c000000);
  CHECK(evaluate("selp.b32 %d, %a0, %a1, %a2", "b32", {{"b32", 1}, {"b32", 2}, {"pred", 0}}) == 2);
  CHECK(evaluate("slct.u32.s32 %d, %a0, %a1, %a2", "b32", {{"b32", 1}, {"b32", 2}, {"b32", 0xffffffff}}) == 2);
  CHECK(evaluate("slct.f32.f32 %d, %a0, %a1, %a2", "b32", {{"b32", 1}, {"b32", 2}, {"b32", kNegativeZero}}) == 1);
}

TEST_CASE("moves") {
  CHECK(evaluate("mov.b64 %d, {%a0, %a1}", "b64", {{"b32", 1}, {"b32", 2}}) == 0x200000001);
  CHECK(evaluate("mov.b32 {%h1, %h2}, %a0;\nmov.b32 %d, {%h2, %h1}", "b32", {{"b32", 0x12345678}}) == 0x56781234);
  CHECK(evaluate("mov.b32 {_, %h2}, %a0;\ncvt.u32.u16 %d, %h2", "b32", {{"b32", 0x12345678}}) == 0x1234);
  CHECK(evaluate("mov.b64 {%r1, %d}, %a0", "b32", {{"b64", 0x200000001}}) == 2);
  CHECK(evaluate("mov.f32 %d, 0f3F800000", "b32", {}) == 0x3f800000);
  CHECK(evaluate("mov.f64 %d, 0.5", "b64", {}) == bits_of(0.5));
  CHECK(evaluate("mov.f32 %d, 0.5", "b32", {}) == bits_of(0.5f));
  CHECK(evaluate("mov.u32 %d, -1", "b32", {}) == 0xffffffff);
  CHECK(evaluate("mov.u32 %d, WARP_SZ", "b32", {}) == 32);
  CHECK(evaluate("mov.u32 %d, %ntid.x", "b32", {}) == 1);
  CHECK(evaluate("{\n.reg .b32 %a0;\nmov.b32 %a0, 7;\n}\nmov.b32 %d, %a0", "b32", {{"b32", 3}}) == 3);
}

TEST_CASE("memory spaces and generic addresses") {
  const std::string globals =
      ".global .align 4 .u32 counter = 9;\n.const .align 8 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n"
      ".global .align 8 .u64 pointer = counter;\n";
  const RunResult result = run_body(R"(
    .shared .align 8 .b8 s[16];
    .local .align 8 .b8 l[16];
    ld.global.u32 %r1, [counter];
    st.global.u32 [%rout], %r1;
    mov.u64 %rd1, table;
    ld.const.u8 %r2, [%rd1+3];
    cvta.const.u64 %rd1, %rd1;
    ld.v2.s8 {%r3, %r4}, [%rd1+4];
    st.global.v2.u32 [%rout+8], {%r2, %r3};
    mov.u64 %rd2, s;
    cvta.shared.u64 %rd3, %rd2;
    st.u64 [%rd3+8], 77;
    ld.shared.u32 %r5, [s+8];
    st.global.u32 [%rout+16], %r5;
    mov.u64 %rd4, l;
    cvta.local.u64 %rd5, %rd4;
    st.u16 [%rd5+4], %r5;
    ld.local.u16 %r6, [l+4];
    st.global.u32 [%rout+20], %r6;
    isspacep.shared %p1, %rd3;
    isspacep.global %p2, %rd3;
    isspacep.local %p3, %rd5;
    isspacep.global %p4, %rout;
    selp.u32 %r7, 1, 0, %p1;
    @%p2 add.u32 %r7, %r7, 2;
    @%p3 add.u32 %r7, %r7, 4;
    @%p4 add.u32 %r7, %r7, 8;
    st.global.u32 [%rout+24], %r7;
    cvta.to.shared.u64 %rd6, %rd3;
    sub.u64 %rd6, %rd6, %rd2;
    st.global.u32 [%rout+28], %rd6;
    ld.global.u64 %rd7, [pointer];
    ld.global.nc.u32 %r8, [%rd7];
    st.volatile.global.u32 [%rout+4], %r8;
    createpolicy.fractional.L2::evict_last.b64 %rd8, 1.0;
    ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%r9, %r10, %r11, %r12}, [%rin], %rd8;
    st.global.wb.v4.b32 [%rout+32], {%r12, %r11, %r10, %r9};
  )",
                                    {1, 2, 3, 4}, 12, 1, 1, globals);
  INFO(describe(result.report));
  CHECK(result.report.findings.empty());
  CHECK(result.out == std::vector<std::uint32_t>{9, 9, 4, 5, 77, 77, 13, 0, 4, 3, 2, 1});
}

TEST_CASE("atomics") {
  const auto atom = [](const std::string& op, const std::string& type, std::uint64_t memory,
                       const std::vector<std::uint64_t>& values) {
    std::string text = fmt::format("st.global.b64 [%rout], %a0;\natom.global.{} %d, [%rout]", op);
    std::vector<std::pair<std::string, std::uint64_t>> operands{{"b64", memory}};
    for (std::size_t i = 0; i < values.size(); ++i) {
      text += fmt::format(", %a{}", i + 1);
      operands.emplace_back(type, values[i]);
    }
    text += fmt::format(";\nmov.b64 %rd5, 0;\nld.global.{} %d, [%rout]", type);
    return evaluate(text, type, operands);
  };
  CHECK(atom("add.u32", "b32", 5, {3}) == 8);
  CHECK(atom("add.u64", "b64", 5, {~std::uint64_t{0}}) == 4);
  CHECK(atom("min.s32", "b32", 5, {0xffffffff}) == 0xffffffff);
  CHECK(atom("max.u32", "b32", 5, {0xffffffff}) == 0xffffffff);
  CHECK(atom("max.s32", "b32", 5, {0xffffffff}) == 5);
  CHECK(atom("inc.u32", "b32", 5, {5}) == 0);
  CHECK(atom("inc.u32", "b32", 5, {6}) == 6);
  CHECK(atom("dec.u32", "b32", 0, {6}) == 6);
  CHECK(atom("dec.u32", "b32", 5, {6}) == 4);
  CHECK(atom("and.b32", "b32", 6, {3}) == 2);
  CHECK(atom("or.b32", "b32", 6, {3}) == 7);
  CHECK(atom("xor.b32", "b32", 6, {3}) == 5);
  CHECK(atom("exch.b64", "b64", 6, {3}) == 3);
  CHECK(atom("cas.b32", "b32", 6, {6, 9}) == 9);
  CHECK(atom("cas.b32", "b32", 6, {7, 9}) == 6);
  CHECK(atom("cas.b16", "b16", 6, {6, 9}) == 9);
  CHECK(atom("add.f32", "b32", bits_of(1.5f), {bits_of(2.0f)}) == bits_of(3.5f));
  CHECK(atom("add.f64", "b64", bits_of(1.5), {bits_of(2.0)}) == bits_of(3.5));
  CHECK(atom("add.noftz.f16", "b16", 0x3c00, {0x3c00}) == 0x4000);
  CHECK(atom("add.noftz.f16x2", "b32", 0x3c003c00, {0x3c004000}) == 0x40004200);
  CHECK(atom("add.noftz.bf16x2", "b32", 0x3f803f80, {0x3f804000}) == 0x40004040);
  const RunResult lanes = run_body(
      "setp.eq.u32 %p1, %t, 0;\n@%p1 st.global.u32 [%rout], 0;\nbar.warp.sync -1;\n"
      "atom.global.gpu.acq_rel.add.u32 %r1, [%rout], %t;\nred.relaxed.gpu.global.add.u32 [%rout], 1;",
      {0}, 1, 32);
  CHECK(lanes.out[0] == 31 * 32 / 2 + 32);
}

TEST_CASE("shuffles") {
  const auto lanes = [](const std::string& op) {
    return run_body("setp.lt.u32 %p1, %t, 40;\n" + op +
                        ";\nselp.u32 %r3, 100, 0, %p2;\nadd.u32 %r2, %r2, %r3;\nmul.wide.u32 %rd1, %t, 4;\nadd.u64 "
                        "%rd1, %rd1, %rout;\nst.global.u32 [%rd1], %r2;",
                    {0}, 32)
        .out;
  };
  const auto up = lanes("shfl.sync.up.b32 %r2|%p2, %t, 1, 0, -1");
  CHECK(up[0] == 0);
  CHECK(up[1] == 100);
  CHECK(up[31] == 130);
  const auto down = lanes("shfl.sync.down.b32 %r2|%p2, %t, 4, 31, -1");
  CHECK(down[0] == 104);
  CHECK(down[28] == 28);
  const auto butterfly = lanes("shfl.sync.bfly.b32 %r2|%p2, %t, 16, 31, -1");
  CHECK(butterfly[0] == 116);
  CHECK(butterfly[31] == 115);
  // Segments of 8 lanes: the segment mask is 0b11000 in bits 8 to 12.
  const auto index = lanes("shfl.sync.idx.b32 %r2|%p2, %t, 3, 0x181f, -1");
  CHECK(index[0] == 103);
  CHECK(index[9] == 111);
  CHECK(index[31] == 127);
}

TEST_CASE("votes, matches and reductions of a warp") {
  const auto lanes = [](const std::string& op, const std::string& value = "%r2") {
    return run_body("setp.lt.u32 %p1, %t, 4;\nand.b32 %r1, %t, 3;\n" + op +
                        ";\nmul.wide.u32 %rd1, %t, 4;\nadd.u64 %rd1, %rd1, %rout;\nst.global.u32 [%rd1], " + value +
                        ";",
                    {0}, 32)
        .out;
  };
  CHECK(lanes("vote.sync.ballot.b32 %r2, %p1, -1")[17] == 0xf);
  CHECK(lanes("vote.sync.ballot.b32 %r2, !%p1, -1")[17] == 0xfffffff0);
  CHECK(lanes("vote.sync.any.pred %p2, %p1, -1;\nselp.u32 %r2, 1, 0, %p2")[17] == 1);
  CHECK(lanes("vote.sync.all.pred %p2, %p1, -1;\nselp.u32 %r2, 1, 0, %p2")[1] == 0);
  CHECK(lanes("vote.sync.uni.pred %p2, %p1, -1;\nselp.u32 %r2, 1, 0, %p2")[1] == 0);
  CHECK(lanes("match.any.sync.b32 %r2, %r1, -1")[5] == 0x22222222);
  CHECK(lanes("match.all.sync.b32 %r2|%p2, %r1, -1")[5] == 0);
  CHECK(lanes("redux.sync.add.u32 %r2, %t, -1")[5] == 496);
  CHECK(lanes("redux.sync.max.s32 %r2, %t, -1")[5] == 31);
  CHECK(lanes("redux.sync.xor.b32 %r2, %r1, -1")[5] == 0);
  CHECK(lanes("activemask.b32 %r2")[5] == 0xffffffff);
  CHECK(lanes("elect.sync %r2|%p2, -1;\n@%p2 add.u32 %r2, %r2, 50")[0] == 50);
  CHECK(lanes("mov.u32 %r2, %lanemask_lt")[5] == 0x1f);
  // Half the warp: its own mask.
  CHECK(lanes("mov.u32 %r2, 0;\n@%p1 redux.sync.add.u32 %r2, %t, 0xf")[2] == 6);
}

TEST_CASE("ldmatrix, stmatrix and movmatrix") {
  // Row r of matrix m holds 100 m + 8 r + column.
  const std::string fill = R"(
    .shared .align 16 .b8 s[512];
    mov.u32 %r1, s;
    shl.b32 %r2, %t, 4;
    add.u32 %r2, %r1, %r2;
    shr.u32 %r3, %t, 3;
    mul.lo.u32 %r3, %r3, 100;
    and.b32 %r4, %t, 7;
    mad.lo.u32 %r3, %r4, 8, %r3;
    mad.lo.u32 %r3, %r3, 0x10001, 0x10000;
    add.u32 %r4, %r3, 0x20002;
    add.u32 %r5, %r3, 0x40004;
    add.u32 %r6, %r3, 0x60006;
    st.shared.v4.b32 [%r2], {%r3, %r4, %r5, %r6};
    bar.warp.sync -1;
    mul.wide.u32 %rd1, %t, 4;
    add.u64 %rd1, %rd1, %rout;
  )";
  const auto value = [](std::uint32_t matrix, std::uint32_t row, std::uint32_t column) {
    return 100 * matrix + 8 * row + column;
  };
  const RunResult plain = run_body(
      fill + "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r7, %r8, %r9, %r10}, [%r2];\nst.global.u32 [%rd1], %r9;", {0},
      32);
  CHECK(plain.report.findings.empty());
  const RunResult turned = run_body(
      fill + "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r7, %r8}, [%r2];\nst.global.u32 [%rd1], %r8;", {0}, 32);
  const RunResult moved =
      run_body(fill +
                   "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r7}, [%r2];\nmovmatrix.sync.aligned.m8n8.trans.b16 %r8, "
                   "%r7;\nst.global.u32 [%rd1], %r8;",
               {0}, 32);
  const RunResult stored =
      run_body(fill +
                   "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r7}, [%r2];\nbar.warp.sync "
                   "-1;\nstmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r2], {%r7};\nbar.warp.sync -1;\n"
                   "shl.b32 %r9, %t, 2;\nadd.u32 %r9, %r9, %r1;\nld.shared.u32 %r8, [%r9];\nst.global.u32 [%rd1], %r8;",
               {0}, 32);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t i = lane / 4, j = 2 * (lane % 4);
    CHECK(plain.out[lane] == (value(2, i, j) | value(2, i, j + 1) << 16));
    CHECK(turned.out[lane] == (value(1, j, i) | value(1, j + 1, i) << 16));
    CHECK(moved.out[lane] == (value(0, j, i) | value(0, j + 1, i) << 16));
    CHECK(stored.out[lane] == (value(0, j, i) | value(0, j + 1, i) << 16));
  }
}

TEST_CASE("branches by table, calls, and reductions over barriers") {
  const RunResult table = run_body(R"(
    T: .branchtargets A, B, C;
    and.b32 %r1, %t, 3;
    mov.u32 %r2, 0;
    setp.gt.u32 %p1, %r1, 2;
    @%p1 bra END;
    brx.idx %r1, T;
    A: mov.u32 %r2, 10; bra END;
    B: mov.u32 %r2, 20; bra END;
    C: mov.u32 %r2, 30;
    END:
    vote.sync.ballot.b32 %r3, 1, -1;
    mul.wide.u32 %rd1, %t, 4;
    add.u64 %rd1, %rd1, %rout;
    st.global.u32 [%rd1], %r2;
  )",
                                   {0}, 32);
  INFO(describe(table.report));
  CHECK(table.report.findings.empty());
  CHECK(std::vector(table.out.begin(), table.out.begin() + 5) == std::vector<std::uint32_t>{10, 20, 30, 0, 10});
  const std::string function = R"(
    .func (.param .b32 result) twice(.param .b32 value)
    {
      .reg .b32 %r<3>;
      .reg .pred %p;
      ld.param.b32 %r1, [value];
      setp.gt.u32 %p, %r1, 7;
      @%p bra BIG;
      add.u32 %r1, %r1, %r1;
      st.param.b32 [result], %r1;
      ret;
    BIG:
      st.param.b32 [result], 1000;
      ret;
    }
  )";
  const RunResult call = run_body(R"(
    {
      .param .b32 argument;
      .param .b32 answer;
      st.param.b32 [argument], %t;
      call.uni (answer), twice, (argument);
      ld.param.b32 %r1, [answer];
    }
    redux.sync.max.u32 %r2, %r1, -1;
    mul.wide.u32 %rd1, %t, 4;
    add.u64 %rd1, %rd1, %rout;
    st.global.u32 [%rd1], %r1;
  )",
                                  {0}, 32, 32, 1, function);
  INFO(describe(call.report));
  CHECK(call.report.findings.empty());
  CHECK(call.out[7] == 14);
  CHECK(call.out[8] == 1000);
  const RunResult reduced = run_body(
      "setp.lt.u32 %p1, %t, 40;\nbar.red.popc.u32 %r1, 0, %p1;\nbar.red.and.pred %p2, 0, %p1;\nbar.red.or.pred %p3, 0, "
      "%p1;\n"
      "selp.u32 %r2, 100, 0, %p2;\nselp.u32 %r3, 1000, 0, %p3;\nadd.u32 %r1, %r1, %r2;\nadd.u32 %r1, %r1, "
      "%r3;\nst.global.u32 [%rout], %r1;",
      {0}, 1, 64);
  CHECK(reduced.out[0] == 1040);
}
