// Every check of the emulator: a kernel with that very defect, which it must find at the right line, and a clean twin.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "emulator/expect.h"
#include "ir/error.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

// Thread t's element of `in` at %rd1, of `out` at %rd2.
const std::string kAddresses = "mul.wide.u32 %rd3, %t, 4;\nadd.u64 %rd1, %rin, %rd3;\nadd.u64 %rd2, %rout, %rd3;\n";
const std::vector<std::uint32_t> kInput(64, 5);

RunResult shared_exchange(const std::string& between, std::uint32_t threads = 64, const std::string& partner = "63") {
  return run_body(kAddresses + R"(
    .shared .align 4 .b8 s[256];
    mov.u32 %r1, s;
    shl.b32 %r2, %t, 2;
    add.u32 %r2, %r2, %r1;
    st.shared.u32 [%r2], %t;
  )" + between + "xor.b32 %r3, %t, " +
                      partner + R"(;
    shl.b32 %r3, %r3, 2;
    add.u32 %r3, %r3, %r1;
    ld.shared.u32 %r4, [%r3];
    st.global.u32 [%rd2], %r4;
  )",
                  kInput, 64, threads);
}

}  // namespace

TEST_CASE("out of bounds of a buffer") {
  clean(run_body(kAddresses + "ld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd2], %r1;", kInput, 64, 64));
  const RunResult load =
      run_body(kAddresses + "ld.global.u32 %r1, [%rd1+4];\nst.global.u32 [%rd2], %r1;", kInput, 64, 64);
  finds(FindingKind::kOutOfBounds, load, "offset 256 of a buffer of 256 bytes [in]");
  CHECK(load.report.findings[0].thread == Dim3{63, 0, 0});
  CHECK(load.out[63] == 0);
  finds(FindingKind::kOutOfBounds,
        run_body(kAddresses + "ld.global.u32 %r1, [%rd1+-4];\nst.global.u32 [%rd2], %r1;", kInput, 64, 64),
        "offset -4 of");
  finds(FindingKind::kOutOfBounds, run_body(kAddresses + "st.global.u32 [%rd2+256], %t;", kInput, 64, 64),
        "store of 4 bytes");
  finds(FindingKind::kOutOfBounds, run_body("ld.global.u32 %r1, [%rd9];", kInput, 64), "outside every buffer");
  finds(FindingKind::kOutOfBounds, run_body("ld.u32 %r1, [%rd9];", kInput, 64), "outside every buffer");
}

TEST_CASE("out of bounds of shared, local, constant and parameter memory") {
  const std::string shared = ".shared .align 4 .b8 s[256];\nmov.u32 %r1, s;\nst.shared.u32 [%r1+{}], %t;\n";
  clean(run_body(fmt::format(fmt::runtime(shared), 252), kInput, 0, 1));
  finds(FindingKind::kOutOfBounds, run_body(fmt::format(fmt::runtime(shared), 256), kInput, 0, 1), "[s]");
  finds(FindingKind::kOutOfBounds, run_body(fmt::format(fmt::runtime(shared), -4), kInput, 0, 1));
  const std::string local = ".local .align 4 .b8 l[16];\nmov.u64 %rd1, l;\nst.local.u32 [%rd1+{}], %t;\n";
  clean(run_body(fmt::format(fmt::runtime(local), 12), kInput, 0, 1));
  finds(FindingKind::kOutOfBounds, run_body(fmt::format(fmt::runtime(local), 16), kInput, 0, 1), "local memory");
  const std::string constants = ".const .align 4 .u32 table[2] = {7, 8};\n";
  clean(run_body("ld.const.u32 %r1, [table+4];", kInput, 0, 1, 1, constants));
  finds(FindingKind::kOutOfBounds, run_body("ld.const.u32 %r1, [table+8];", kInput, 0, 1, 1, constants),
        "const memory");
  finds(FindingKind::kOutOfBounds, run_body("ld.param.u64 %rd1, [p_out+8];", kInput, 0, 1), "param memory");
  const std::string dynamic = ".extern .shared .align 16 .b8 d[];\n";
  const std::string store = "mov.u32 %r1, d;\nst.shared.u32 [%r1+60], %t;";
  clean(run_body(store, kInput, 0, 1, 1, dynamic, {}, 64));
  finds(FindingKind::kOutOfBounds, run_body(store, kInput, 0, 1, 1, dynamic, {}, 60));
}

TEST_CASE("misaligned") {
  clean(run_body("ld.global.v2.u32 {%r1, %r2}, [%rin+8];", kInput, 0, 1));
  finds(FindingKind::kMisaligned, run_body("ld.global.v2.u32 {%r1, %r2}, [%rin+4];", kInput, 0, 1), "[in]");
  finds(FindingKind::kMisaligned, run_body("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rin+8];", kInput, 0, 1));
  finds(FindingKind::kMisaligned,
        run_body(".shared .align 8 .b8 s[64];\nmov.u32 %r1, s;\nst.shared.u32 [%r1+2], %t;", kInput, 0, 1));
}

TEST_CASE("never-written memory") {
  const std::string use = "\nst.global.u32 [%rout+4], %r1;";
  clean(run_body("st.global.u32 [%rout], %t;\nld.global.u32 %r1, [%rout];" + use, kInput, 4, 1));
  finds(FindingKind::kUnwrittenRead, run_body("ld.global.u32 %r1, [%rout];" + use, kInput, 4, 1), "[out]");
  finds(FindingKind::kUnwrittenRead, run_body("atom.global.add.u32 %r1, [%rout], 1;", kInput, 4, 1), "[out]");
  finds(FindingKind::kUnwrittenRead,
        run_body("st.global.u16 [%rout], %h1;\nld.global.u32 %r1, [%rout];" + use, kInput, 4, 1), "byte 0");
  finds(FindingKind::kUnwrittenRead,
        run_body(".shared .align 4 .b8 s[64];\nld.shared.u32 %r1, [s];" + use, kInput, 4, 1), "shared");
  finds(FindingKind::kUnwrittenRead, run_body(".local .align 4 .b8 l[64];\nld.local.u32 %r1, [l];" + use, kInput, 4, 1),
        "local");
}

TEST_CASE("written memory lasts from launch to launch") {
  const Module module(kernel_text("st.global.u32 [%rout], 7;"), "a.ptx");
  const Module reader(kernel_text("ld.global.u32 %r1, [%rin];\nst.global.u32 [%rout], %r1;"), "b.ptx");
  std::vector<std::uint32_t> a(1), b(1);
  Memory memory;
  const auto ai = memory.add({.name = "a", .bytes = std::as_writable_bytes(std::span(a)), .initialized = false});
  const auto bi = memory.add({.name = "b", .bytes = std::as_writable_bytes(std::span(b)), .initialized = false});
  const Launch first{.kernel = "k", .arguments = {pointer_argument(memory, bi), pointer_argument(memory, ai)}};
  const Launch second{.kernel = "k", .arguments = {pointer_argument(memory, ai), pointer_argument(memory, bi)}};
  CHECK(!run(reader, second, memory).findings.empty());
  CHECK(memory.first_unwritten(ai) == 0);
  CHECK(run(module, first, memory).findings.empty());
  CHECK(!memory.first_unwritten(ai));
  CHECK(run(reader, second, memory).findings.empty());
  CHECK(b[0] == 7);
  memory.mark_unwritten(ai, 0, 4);
  CHECK(!run(reader, second, memory).findings.empty());
}

TEST_CASE("read-only buffers") {
  finds(FindingKind::kReadOnlyWrite, run_body("st.global.u32 [%rin], %t;", kInput, 4, 1), "[in]");
  const std::string constants = ".const .align 4 .u32 table[2] = {7, 8};\n";
  finds(FindingKind::kReadOnlyWrite,
        run_body("mov.u64 %rd1, table;\ncvta.const.u64 %rd1, %rd1;\nst.u32 [%rd1], %t;", kInput, 4, 1, 1, constants));
}

TEST_CASE("races in shared memory") {
  clean(shared_exchange("bar.sync 0;\n"));
  finds(FindingKind::kSharedRace, shared_exchange(""), "reads what was written by thread");
  // Within a warp a bar.warp.sync is enough, and needed.
  clean(shared_exchange("bar.warp.sync -1;\n", 64, "31"));
  finds(FindingKind::kSharedRace, shared_exchange("", 64, "31"));
  // Two threads, one word.
  const std::string both = ".shared .align 4 .b8 s[64];\nmov.u32 %r1, s;\nst.shared.u32 [%r1], {};\n";
  finds(FindingKind::kSharedRace, run_body(fmt::format(fmt::runtime(both), "%t"), kInput, 0, 64),
        "writes over what was written by");
  clean(run_body(fmt::format(fmt::runtime(both), "7"), kInput, 0, 64));
  // Half words beside each other are different places.
  clean(
      run_body(".shared .align 4 .b8 s[128];\nmov.u32 %r1, s;\nshl.b32 %r2, %t, 1;\nadd.u32 %r1, %r1, "
               "%r2;\ncvt.u16.u32 %h1, %t;\nst.shared.u16 [%r1], %h1;\nld.shared.u16 %h2, [%r1];",
               kInput, 0, 64));
}

TEST_CASE("writing over what others still read") {
  const auto body = [](const std::string& between) {
    return ".shared .align 4 .b8 s[256];\nmov.u32 %r1, s;\nshl.b32 %r2, %t, 2;\nadd.u32 %r2, %r2, %r1;\n"
           "st.shared.u32 [%r2], %t;\nbar.sync 0;\nld.shared.u32 %r3, [%r1+252];\n" +
           between + "add.u32 %r4, %t, 100;\nst.shared.u32 [%r2], %r4;\n";
  };
  clean(run_body(body("bar.sync 0;\n"), kInput, 0, 64));
  finds(FindingKind::kSharedRace, run_body(body(""), kInput, 0, 64), "writes over what was read by");
}

TEST_CASE("atomics do not race with each other, plain reads do") {
  const std::string start =
      ".shared .align 4 .b8 s[64];\nsetp.eq.u32 %p1, %t, 0;\n@%p1 st.shared.u32 [s], 0;\nbar.sync "
      "0;\natom.shared.add.u32 %r1, [s], 1;\n";
  const RunResult good =
      run_body(start + "bar.sync 0;\nld.shared.u32 %r2, [s];\nst.global.u32 [%rout], %r2;", kInput, 1, 64);
  clean(good);
  CHECK(good.out[0] == 64);
  finds(FindingKind::kSharedRace, run_body(start + "ld.shared.u32 %r2, [s];", kInput, 1, 64));
  finds(FindingKind::kSharedRace, run_body(".shared .align 4 .b8 s[64];\nsetp.eq.u32 %p1, %t, 0;\n@%p1 st.shared.u32 "
                                           "[s], 0;\natom.shared.add.u32 %r1, [s], 1;\n",
                                           kInput, 1, 64));
}

TEST_CASE("named barriers order only those who meet there") {
  // Warp 0 writes, warp 1 reads after a barrier of the two; warp 2 reads without.
  const std::string start =
      ".shared .align 4 .b8 s[64];\nshr.u32 %r1, %t, 5;\nsetp.eq.u32 %p1, %t, 0;\n@%p1 st.shared.u32 [s], 5;\n"
      "setp.gt.u32 %p2, %r1, 1;\n@%p2 bra OTHERS;\nbar.sync 1, 64;\n";
  clean(run_body(start + "ld.shared.u32 %r2, [s];\nOTHERS:\n", kInput, 0, 96));
  finds(FindingKind::kSharedRace, run_body(start + "OTHERS:\nld.shared.u32 %r2, [s];\n", kInput, 0, 96));
}

TEST_CASE("races between blocks") {
  const std::string index = "mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd1, %r1, 4;\nadd.u64 %rd2, %rout, %rd1;\n";
  clean(run_body(index + "st.global.u32 [%rd2], %r1;\nld.global.u32 %r2, [%rd2];", kInput, 4, 1, 4));
  finds(FindingKind::kGlobalRace, run_body(index + "st.global.u32 [%rout], %r1;", kInput, 4, 1, 4),
        "another block writes too [out]");
  finds(FindingKind::kGlobalRace,
        run_body(index + "st.global.u32 [%rd2], %r1;\nsetp.gt.u32 %p1, %r1, 0;\n@%p1 ld.global.u32 %r2, [%rout];",
                 kInput, 4, 1, 4),
        "another block writes in this launch");
  clean(run_body(index + "st.global.u32 [%rout], 9;", kInput, 4, 1, 4));
}

TEST_CASE("ld.global.nc of what the kernel itself writes") {
  const std::string index = "mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd1, %r1, 4;\nadd.u64 %rd2, %rout, %rd1;\n";
  finds(FindingKind::kGlobalRace,
        run_body(index + "st.global.u32 [%rd2], %r1;\nld.global.nc.u32 %r2, [%rd2];", kInput, 4, 1, 4),
        "read-only cache");
  clean(run_body(index + "ld.global.nc.u32 %r2, [%rin];\nst.global.u32 [%rd2], %r2;", kInput, 4, 1, 4));
}

TEST_CASE("setmaxnreg of some warps of a group only") {
  const std::string change = "setmaxnreg.dec.sync.aligned.u32 40;\n", guard = "setp.lt.u32 %p1, %t, {};\n@%p1 ";
  clean(run_body(change, kInput, 0, 128));
  clean(run_body(fmt::format(fmt::runtime(guard), 128) + change, kInput, 0, 256));
  finds(FindingKind::kWarpSync, run_body(fmt::format(fmt::runtime(guard), 32) + change, kInput, 0, 128), "setmaxnreg");
}

TEST_CASE("asynchronous copies") {
  const auto body = [](const std::string& wait) {
    return std::string(
               ".shared .align 16 .b8 s[1024];\nmov.u32 %r1, s;\nshl.b32 %r2, %t, 4;\nadd.u32 %r1, %r1, %r2;\n"
               "cp.async.cg.shared.global [%r1], [%rin], 16;\ncp.async.commit_group;\n") +
           wait +
           "ld.shared.u32 %r3, [%r1];\nmul.wide.u32 %rd1, %t, 4;\nadd.u64 %rd1, %rd1, %rout;\nst.global.u32 [%rd1], "
           "%r3;\n";
  };
  const RunResult good = run_body(body("cp.async.wait_group 0;\n"), kInput, 32);
  clean(good);
  CHECK(good.out[31] == 5);
  clean(run_body(body("cp.async.wait_all;\n"), kInput, 32));
  finds(FindingKind::kAsyncRead, run_body(body(""), kInput, 32), "not yet been waited for");
  finds(FindingKind::kAsyncRead, run_body(body("cp.async.wait_group 1;\n"), kInput, 32));
  // Fewer source bytes: the rest is zeros.
  const RunResult part = run_body(
      ".shared .align 16 .b8 s[16];\nmov.u32 %r1, s;\ncp.async.ca.shared.global [%r1], [%rin], 16, "
      "4;\ncp.async.wait_all;\nld.shared.v2.u32 {%r2, %r3}, [%r1];\nst.global.v2.u32 [%rout], {%r2, %r3};",
      kInput, 2, 1);
  clean(part);
  CHECK(part.out == std::vector<std::uint32_t>{5, 0});
  // Another thread's copy is seen only behind a barrier.
  const std::string other =
      ".shared .align 16 .b8 s[1024];\nmov.u32 %r1, s;\nshl.b32 %r2, %t, 4;\nadd.u32 %r3, %r1, "
      "%r2;\ncp.async.cg.shared.global [%r3], [%rin], 16;\ncp.async.wait_all;\n";
  clean(run_body(other + "bar.sync 0;\nld.shared.u32 %r4, [%r1+1008];", kInput, 0, 64));
  finds(FindingKind::kSharedRace, run_body(other + "ld.shared.u32 %r4, [%r1+1008];", kInput, 0, 64));
}

TEST_CASE("an asynchronous copy may write as soon as it is issued") {
  // Threads read or write words of s, or copy into them; then the copies of one warp follow, after a barrier or not.
  // Their wait lies behind another barrier, which orders nothing.
  const auto body = [](const std::string& before, const std::string& between, int copying_warp) {
    return ".shared .align 16 .b8 s[512];\nmov.u32 %r1, s;\nshr.u32 %r5, %t, 5;\nand.b32 %r6, %t, 31;\n"
           "shl.b32 %r2, %r6, 4;\nadd.u32 %r2, %r2, %r1;\nxor.b32 %r7, %r2, 16;\nsetp.eq.u32 %p1, %r5, " +
           std::to_string(copying_warp) + ";\n@%p1 st.shared.v4.u32 [%r2], {%t, %t, %t, %t};\nbar.sync 0;\n" + before +
           between +
           "@%p1 cp.async.cg.shared.global [%r2], [%rin], 16;\nbar.sync 0;\ncp.async.wait_all;\nbar.sync 0;\n";
  };
  const std::string read = "@!%p1 ld.shared.u32 %r8, [%r2];\n", write = "@!%p1 st.shared.u32 [%r2], 77;\n",
                    neighbour = "ld.shared.u32 %r8, [%r7];\n",
                    copy = "@%p1 cp.async.cg.shared.global [%r2], [%rin+16], 16;\n";
  const std::vector<std::uint32_t> in{5, 6, 7, 8, 9, 10, 11, 12};
  for (const int warp : {0, 1}) {
    CAPTURE(warp);
    // The emulator runs warp 0 first: then it is the other that comes upon a copy under way.
    const FindingKind kind = warp == 0 ? FindingKind::kAsyncRead : FindingKind::kSharedRace;
    finds(kind, run_body(body(read, "", warp), in, 0, 64), warp == 0 ? "not yet been waited" : "over what was read by");
    finds(kind, run_body(body(write, "", warp), in, 0, 64),
          warp == 0 ? "not yet been waited" : "over what was written by");
    clean(run_body(body(read, "bar.sync 0;\n", warp), in, 0, 64));
    clean(run_body(body(write, "bar.sync 0;\n", warp), in, 0, 64));
  }
  // Lanes of one warp, too.
  finds(FindingKind::kSharedRace, run_body(body(neighbour, "", 0), in, 0, 32), "over what was read by");
  clean(run_body(body(neighbour, "bar.warp.sync -1;\n", 0), in, 0, 32));
  // Two copies of one lane into the same place.
  finds(FindingKind::kSharedRace, run_body(body(copy, "", 0), in, 0, 32), "another asynchronous copy");
  clean(run_body(body(copy, "cp.async.wait_all;\n", 0), in, 0, 32));
}

TEST_CASE("barriers that not all reach") {
  // Half of a warp at one barrier, half at another.
  finds(FindingKind::kBarrierDivergence,
        run_body("setp.lt.u32 %p1, %t, 16;\n@%p1 bra A;\nbar.sync 0;\nbra B;\nA:\nbar.sync 0;\nB:\n", kInput, 0, 32));
  clean(run_body("setp.lt.u32 %p1, %t, 16;\n@%p1 bra A;\nadd.u32 %r1, %r1, 1;\nA:\nbar.sync 0;\n", kInput, 0, 32));
  // One warp never comes to the barrier that expects 64 threads.
  finds(FindingKind::kDeadlock, run_body("setp.ge.u32 %p1, %t, 32;\n@%p1 bra A;\nbar.sync 1, 64;\nA:\n", kInput, 0, 64),
        "not all threads reach");
  // Threads that have left do not count.
  clean(run_body("setp.ge.u32 %p1, %t, 32;\n@%p1 exit;\nbar.sync 0;\n", kInput, 0, 64));
}

TEST_CASE("member masks") {
  clean(run_body("shfl.sync.bfly.b32 %r1, %t, 1, 31, -1;", kInput, 0, 32));
  finds(FindingKind::kWarpSync, run_body("shfl.sync.bfly.b32 %r1, %t, 1, 31, 1;", kInput, 0, 32),
        "its member mask leaves out");
  finds(FindingKind::kWarpSync,
        run_body("setp.lt.u32 %p1, %t, 16;\n@%p1 shfl.sync.bfly.b32 %r1, %t, 16, 31, 0xffff;", kInput, 0, 32),
        "which does not take part");
  // Half the warp votes for all, the other half goes away to a vote of its own.
  finds(FindingKind::kWarpSync,
        run_body("setp.lt.u32 %p1, %t, 16;\n@%p1 bra A;\nvote.sync.ballot.b32 %r1, %p1, -1;\nbra "
                 "B;\nA:\nvote.sync.any.pred %p2, %p1, -1;\nB:\n",
                 kInput, 0, 32),
        "never come");
  // Lanes of both sides of a branch may meet at a bar.warp.sync each.
  clean(run_body("setp.lt.u32 %p1, %t, 16;\n@%p1 bra A;\nbar.warp.sync -1;\nbra B;\nA:\nbar.warp.sync -1;\nB:\n",
                 kInput, 0, 32));
}

TEST_CASE("kernels that never end") {
  finds(FindingKind::kRunaway,
        run_body("L:\nadd.u32 %r1, %r1, 1;\nbra L;\n", kInput, 0, 32, 1, {}, {.max_instructions = 10000}));
  clean(run_body("mov.u32 %r1, 0;\nL:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 1000;\n@%p1 bra L;\n", kInput, 0, 32,
                 1, {}, {.max_instructions = 10000}));
}

TEST_CASE("traps") {
  finds(FindingKind::kTrap, run_body("trap;", kInput, 0, 32));
  clean(run_body("setp.gt.u32 %p1, %t, 100;\n@%p1 trap;", kInput, 0, 32));
}

TEST_CASE("impossible launches") {
  finds(FindingKind::kLaunch, run_body("ret;", kInput, 0, 1025), "1025");
  finds(FindingKind::kLaunch, run_body("ret;", kInput, 0, 32, 1, {}, {}, 300000), "shared memory");
  const Module module(kernel_text("ret;"), "a.ptx");
  Memory memory;
  CHECK(run(module, {.kernel = "k"}, memory).findings.at(0).message == "0 arguments for 2 parameters");
  CHECK(run(module, {.kernel = "k", .arguments = {Argument(8), Argument(4)}}, memory).findings.at(0).kind ==
        FindingKind::kLaunch);
}

TEST_CASE("more parameters and shared memory than there are") {
  struct Case {
    std::string target = "sm_90a", version = "8.1";
    std::size_t parameter = 8;
    std::uint64_t declared = 16;
    std::uint32_t dynamic = 0;
    std::uint64_t limit = 227 * 1024;
  };
  const auto launch = [](const Case& with) {
    const Module module(
        fmt::format(".version {}\n.target {}\n.address_size 64\n.visible .entry k(.param .align 4 .b8 "
                    "p[{}]) {{\n.shared .align 16 .b8 s[{}];\n.reg .b32 %r;\nmov.u32 %r, s;\nret;\n}}\n",
                    with.version, with.target, with.parameter, with.declared),
        "a.ptx");
    Memory memory;
    RunResult result;
    result.report =
        run(module, {.kernel = "k", .dynamic_shared_bytes = with.dynamic, .arguments = {Argument(with.parameter)}},
            memory, {.max_shared_bytes = with.limit});
    return result;
  };
  clean(launch({.parameter = 32764}));
  finds(FindingKind::kLaunch, launch({.parameter = 32768}), "32768 bytes of parameters");
  // Before PTX 8.1 there were 4352, on any target.
  clean(launch({.version = "8.0", .parameter = 4352}));
  finds(FindingKind::kLaunch, launch({.version = "8.0", .parameter = 4356}), "4352 are possible");
  clean(launch({.target = "sm_80", .parameter = 4356}));
  // What a kernel declares itself, on any target.
  clean(launch({.declared = 49152}));
  finds(FindingKind::kLaunch, launch({.declared = 49153}), "49153 bytes of static shared memory");
  // All of it, by target.
  for (const auto& [target, kib] : {std::pair{"sm_75", 64u},
                                    {"sm_80", 163u},
                                    {"sm_86", 99u},
                                    {"sm_87", 163u},
                                    {"sm_89", 99u},
                                    {"sm_90", 227u},
                                    {"sm_100a", 227u},
                                    {"sm_120", 99u}}) {
    CAPTURE(target);
    clean(launch({.target = target, .dynamic = 1024 * kib - 16}));
    finds(FindingKind::kLaunch, launch({.target = target, .dynamic = 1024 * kib - 15}),
          "shared memory; the target has");
  }
  finds(FindingKind::kLaunch, launch({.dynamic = 200000, .limit = 163 * 1024}), "the target has 166912");
}

TEST_CASE("instructions that the target does not have") {
  const auto compile = [](const std::string& target, const std::string& instruction) {
    const Module module(".version 8.6\n.target " + target +
                            "\n.address_size 64\n.visible .entry k() {\n.shared .align 8 .b64 b;\n.reg .b32 %r<3>;\n"
                            ".reg .pred %p;\n" +
                            instruction + ";\nret;\n}\n",
                        "a.ptx");
    return module.kernel("k");
  };
  struct Case {
    const char *instruction, *has, *lacks;
  };
  for (const auto& [instruction, has, lacks] :
       {Case{"setmaxnreg.dec.sync.aligned.u32 40", "sm_90a", "sm_90"},
        {"setmaxnreg.inc.sync.aligned.u32 40", "sm_100a", "sm_80"},
        {"wgmma.commit_group.sync.aligned", "sm_90a", "sm_100a"},
        {"wgmma.fence.sync.aligned", "sm_90a", "sm_90"},
        {"mbarrier.try_wait.parity.shared::cta.b64 %p, [b], 0", "sm_90", "sm_80"},
        {"mbarrier.inval.shared::cta.b64 [b]", "sm_80", "sm_75"},
        {"elect.sync %r1|%p, -1", "sm_120", "sm_89"},
        {"cp.async.bulk.commit_group", "sm_90", "sm_80"},
        {"cp.async.commit_group", "sm_80", "sm_75"},
        {"redux.sync.add.u32 %r1, %r2, -1", "sm_80", "sm_75"}}) {
    CAPTURE(instruction);
    CHECK_NOTHROW(compile(has, instruction));
    CHECK_THROWS_WITH_AS(compile(lacks, instruction), doctest::Contains("does not exist for .target"), fusec::Error);
  }
}

TEST_CASE("kernels that never end: spins on what nobody brings") {
  const auto spin = [](const std::string& before) {
    return run_body(before + "L:\nld.volatile.global.u32 %r1, [%rout];\nsetp.ne.u32 %p1, %r1, 2;\n@%p1 bra L;\n", {0},
                    1, 32, 2, {}, {.max_instructions = 20000});
  };
  clean(spin("st.volatile.global.u32 [%rout], 2;\n"));
  CHECK(spin("st.volatile.global.u32 [%rout], 1;\n").has(FindingKind::kRunaway));
}

TEST_CASE("a finding names the source line and how often") {
  const RunResult result =
      run_body(".loc 1 42 7\nld.global.u32 %r1, [%rin+4096];", kInput, 0, 32, 2, ".file 1 \"model.cu\"\n");
  REQUIRE(result.report.findings.size() == 1);
  const Finding& finding = result.report.findings[0];
  CHECK(finding.source_file == "model.cu");
  CHECK(finding.source_line == 42);
  CHECK(finding.instruction == "ld.global.u32");
  CHECK(finding.count == 64);
  CHECK(describe(finding).starts_with("k model.cu:42 (ptx line "));
}

TEST_CASE("counters") {
  // 32 lanes, 4 bytes each, side by side: 4 sectors; 128 bytes apart: 32.
  const RunResult dense = run_body(kAddresses + "ld.global.u32 %r1, [%rd1];", kInput, 0, 32);
  CHECK(dense.report.counters.sectors_read == 4);
  CHECK(dense.report.counters.bytes_read == 128);
  CHECK(dense.report.counters.global_requests == 1);
  const std::vector<std::uint32_t> large(1024);
  const RunResult strided = run_body(
      "mul.wide.u32 %rd1, %t, 128;\nadd.u64 %rd1, %rd1, %rin;\nld.global.u32 %r1, [%rd1];\nld.global.u32 %r1, [%rd1];",
      large, 0, 32);
  CHECK(strided.report.counters.sectors_read == 64);
  CHECK(strided.report.counters.distinct_sectors_read == 32);
  const RunResult broadcast = run_body("ld.global.u32 %r1, [%rin];", kInput, 0, 32);
  CHECK(broadcast.report.counters.sectors_read == 1);
  // Shared memory, two words apart: every bank twice, one more pass.
  const auto banks = [](int stride) {
    return run_body(fmt::format(".shared .align 16 .b8 s[8192];\nmul.lo.u32 %r1, %t, {};\nmov.u32 %r2, s;\nadd.u32 "
                                "%r1, %r1, %r2;\nst.shared.u32 [%r1], %t;",
                                stride),
                    kInput, 0, 32)
        .report.counters.shared_bank_conflicts;
  };
  CHECK(banks(4) == 0);
  CHECK(banks(8) == 1);
  CHECK(banks(128) == 31);
  CHECK(banks(132) == 0);
  const Counters& counters = dense.report.counters;
  CHECK(counters.warps == 1);
  CHECK(counters.blocks == 1);
  CHECK(counters.lane_instructions[static_cast<std::size_t>(InstructionClass::kLoadStore)] == 32 * 3);
}
