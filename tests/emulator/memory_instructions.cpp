// Memory spaces, generic addresses and atomics: results that follow from the ISA's text, worked out by hand.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "emulator/one_instruction.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

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
