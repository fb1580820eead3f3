// A first end-to-end check: loads, arithmetic, a loop, divergence and a barrier in one kernel.
#include <doctest/doctest.h>

#include "emulator/harness.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

TEST_CASE("adds one to every element") {
  std::vector<std::uint32_t> in(128);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = bits_of(static_cast<float>(i));
  const RunResult result = run_body(R"(
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mad.lo.s32 %r3, %r1, %r2, %t;
    mul.wide.s32 %rd1, %r3, 4;
    add.s64 %rd2, %rin, %rd1;
    add.s64 %rd3, %rout, %rd1;
    ld.global.f32 %f1, [%rd2];
    add.f32 %f2, %f1, 0f3F800000;
    st.global.f32 [%rd3], %f2;
  )",
                                    in, 128, 64, 2);
  INFO(describe(result.report));
  CHECK(result.report.findings.empty());
  for (std::size_t i = 0; i < in.size(); ++i) CHECK(float_of(result.out[i]) == static_cast<float>(i) + 1);
  CHECK(result.report.counters.sectors_read == 16);
  CHECK(result.report.counters.sectors_written == 16);
  CHECK(result.report.counters.distinct_sectors_read == 16);
}

TEST_CASE("a divergent loop meets again before the barrier") {
  const RunResult result = run_body(R"(
    .shared .align 4 .b8 buffer[256];
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
    setp.eq.u32 %p1, %t, 0;
    @%p1 bra DONE;
  LOOP:
    add.u32 %r1, %r1, %t;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p2, %r2, %t;
    @%p2 bra LOOP;
  DONE:
    mov.u32 %r3, buffer;
    shl.b32 %r4, %t, 2;
    add.u32 %r5, %r3, %r4;
    st.shared.u32 [%r5], %r1;
    bar.sync 0;
    xor.b32 %r6, %t, 63;
    shl.b32 %r6, %r6, 2;
    add.u32 %r6, %r3, %r6;
    ld.shared.u32 %r7, [%r6];
    cvt.u64.u32 %rd1, %r4;
    add.u64 %rd1, %rd1, %rout;
    st.global.u32 [%rd1], %r7;
  )",
                                    {0}, 64, 64);
  INFO(describe(result.report));
  CHECK(result.report.findings.empty());
  for (std::uint32_t i = 0; i < 64; ++i) CHECK(result.out[i] == (63 - i) * (63 - i));
  CHECK(result.report.counters.barriers == 1);
}
