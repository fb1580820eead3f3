// Conversions, comparisons, selections and moves: results that follow from the ISA's text, worked out by hand.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "emulator/one_instruction.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

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
  // Powers of two, 2^-127 to 2^127, and NaN: the sign is dropped, the rest truncated or rounded up.
  CHECK(pair("cvt.rz.satfinite.ue8m0x2.f32", "b16", 3.0f, -0.75f) == 0x807e);
  CHECK(pair("cvt.rp.satfinite.ue8m0x2.f32", "b16", 3.0f, 4.0f) == 0x8181);
  CHECK(pair("cvt.rz.satfinite.ue8m0x2.f32", "b16", std::nanf(""), 0.0f) == 0xff00);
  CHECK(pair("cvt.rp.satfinite.ue8m0x2.f32", "b16", INFINITY, 0x1p-130f) == 0xfe00);
  CHECK(cvt("cvt.rz.satfinite.ue8m0x2.bf16x2", "b16", "b32", 0x40403f80) == 0x807f);
  CHECK(cvt("cvt.rp.satfinite.ue8m0x2.bf16x2", "b16", "b32", 0x40403f80) == 0x817f);
  CHECK(cvt("cvt.rn.bf16x2.ue8m0x2", "b32", "b16", 0x7f00) == 0x3f800040);
  CHECK(cvt("cvt.rn.bf16x2.ue8m0x2", "b32", "b16", 0xfffe) == 0x7fff7f00);
  CHECK(pair("cvt.rn.satfinite.e2m1x2.f32", "b16", -0.25f, 5.0f) == 0x0086);
  CHECK(pair("cvt.rn.satfinite.e2m1x2.f32", "b16", std::nanf(""), -100.0f) == 0x007f);
  CHECK(pair("cvt.rn.satfinite.e2m3x2.f32", "b16", 7.5f, -0.125f) == 0x1f21);
  CHECK(pair("cvt.rn.satfinite.e3m2x2.f32", "b16", 29.0f, -0.0625f) == 0x1f21);
  CHECK(cvt("cvt.rn.f16x2.e2m3x2", "b32", "b16", 0x1f21) == 0x4780b000);
  CHECK(cvt("cvt.rn.f16x2.e3m2x2", "b32", "b16", 0x1f21) == 0x4f00ac00);
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
