// What the lanes of a warp do together, and control flow: results that follow from the ISA's text, by hand.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "emulator/one_instruction.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

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
  // All numbers of matrices, rows in another order, each way turned or not.
  for (const std::uint32_t count : {1u, 2u, 4u}) {
    for (const bool load_turned : {false, true}) {
      for (const bool store_turned : {false, true}) {
        CAPTURE(count);
        CAPTURE(load_turned);
        CAPTURE(store_turned);
        const std::string registers = count == 1 ? "{%r7}" : count == 2 ? "{%r7, %r8}" : "{%r7, %r8, %r9, %r10}";
        std::string body = fill +
                           ".shared .align 16 .b8 other[512];\nmov.u32 %r11, other;\nxor.b32 %r12, %t, 5;\n"
                           "shl.b32 %r12, %r12, 4;\nadd.u32 %r12, %r12, %r1;\nshl.b32 %r13, %t, 4;\n"
                           "add.u32 %r13, %r13, %r11;\nshl.b32 %r14, %t, 2;\nadd.u32 %r14, %r14, %r11;\n";
        body += fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {}, [%r12];\n", count,
                            load_turned ? ".trans" : "", registers);
        body += fmt::format("stmatrix.sync.aligned.m8n8.x{}{}.shared.b16 [%r13], {};\nbar.warp.sync -1;\n", count,
                            store_turned ? ".trans" : "", registers);
        for (std::uint32_t m = 0; m < count; ++m)
          body += fmt::format("ld.shared.u32 %r15, [%r14+{0}];\nst.global.u32 [%rd1+{0}], %r15;\n", 128 * m);
        const RunResult result = run_body(body, {0}, 32 * count);
        INFO(describe(result.report));
        REQUIRE(result.report.findings.empty());
        for (std::uint32_t word = 0; word < 32 * count; ++word) {
          const std::uint32_t m = word / 32, row = word / 4 % 8, column = word % 4 * 2;
          const auto wanted = [&](std::uint32_t r, std::uint32_t c) {
            return load_turned == store_turned ? value(m, r ^ 5, c) : value(m, c ^ 5, r);
          };
          REQUIRE(result.out[word] == (wanted(row, column) | wanted(row, column + 1) << 16));
        }
      }
    }
  }
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
