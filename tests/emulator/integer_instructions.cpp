// Integers and bits: operands whose results follow from the ISA's text, worked out by hand.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "emulator/one_instruction.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

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
  // The high half of a signed product, and the carry of its bits: -2 * 2^30 has -1 above, and -1 + 1 carries.
  const auto carried = [](const std::string& type, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    return evaluate("mad.hi.cc." + type + " %d, %a0, %a1, %a2;\naddc.u32 %d, %d, 0x100", "b32",
                    {{"b32", a}, {"b32", b}, {"b32", c}});
  };
  CHECK(carried("s32", 0xfffffffe, 0x40000000, 1) == 0x101);
  CHECK(carried("s32", 0xfffffffe, 0x40000000, 0) == 0xff);
  CHECK(carried("u32", 0xfffffffe, 0x40000000, 1) == 0x40000100);
  CHECK(evaluate("add.cc.u32 %d, -1, 1;\nmadc.hi.s32 %d, %a0, %a1, %a2", "b32",
                 {{"b32", 0xfffffffe}, {"b32", 0x40000000}, {"b32", 7}}) == 7);
  CHECK(evaluate("mad.hi.cc.s64 %d, %a0, %a1, %a2", "b64", {{"b64", ~0ull}, {"b64", 5}, {"b64", 3}}) == 2);
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
