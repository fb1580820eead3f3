// What orders accesses beyond barriers, each with the defect and its clean twin: release and acquire in shared memory,
// strong and weak accesses of several blocks, groups of bulk stores, proxy fences before bulk loads.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "emulator/bulk_parts.h"
#include "emulator/expect.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;
using namespace fusec::emulator::testing::bulk_parts;

namespace {

// ---- shared memory

const std::string kCounter =
    ".shared .align 4 .u32 lock;\n.shared .align 4 .u32 count;\nsetp.eq.u32 %p1, %t, 0;\n"
    "@%p1 st.shared.u32 [lock], 0;\n@%p1 st.shared.u32 [count], 0;\nbar.sync 0;\n";
const std::string kResult =
    "bar.sync 0;\nsetp.eq.u32 %p1, %t, 0;\nld.shared.u32 %r9, [count];\n@%p1 st.global.u32 [%rout], %r9;\n";

// Every thread takes the lock once and counts.
RunResult count_under_lock(const std::string& take, const std::string& behind, const std::string& before,
                           const std::string& give) {
  return run_body(kCounter + "TRY: " + take + " %r1, [lock], 0, 1;\nsetp.ne.u32 %p2, %r1, 0;\n@%p2 bra AGAIN;\n" +
                      behind + "ld.shared.u32 %r2, [count];\nadd.u32 %r2, %r2, 1;\nst.shared.u32 [count], %r2;\n" +
                      before + give + "\nbra DONE;\nAGAIN: bra TRY;\nDONE:\n" + kResult,
                  {0}, 1, 64);
}

// Warp 0 writes a word each and raises a flag; warp 1 waits for it and reads.
RunResult hand_over(const std::string& raise, const std::string& look, const std::string& behind) {
  return run_body(
      ".shared .align 4 .b8 s[128];\n.shared .align 4 .u32 flag;\nsetp.eq.u32 %p1, %t, 0;\n"
      "@%p1 st.shared.u32 [flag], 0;\nbar.sync 0;\nmov.u32 %r1, s;\nand.b32 %r2, %t, 31;\nshl.b32 %r3, %r2, 2;\n"
      "add.u32 %r4, %r1, %r3;\nsetp.ge.u32 %p2, %t, 32;\n@%p2 bra READ;\nst.shared.u32 [%r4], %t;\n" +
          raise + "\nbra END;\nREAD: " + look + " %r5, [flag];\nsetp.ne.u32 %p3, %r5, 1;\n@%p3 bra READ;\n" + behind +
          "ld.shared.u32 %r6, [%r4];\nmul.wide.u32 %rd1, %r2, 4;\nadd.u64 %rd1, %rd1, %rout;\n"
          "st.global.u32 [%rd1], %r6;\nEND:\n",
      {0}, 32, 64);
}

// ---- two blocks: %p1 in block 0

const std::string kBlock = "mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 0;\n";

RunResult two_blocks(const std::string& first, const std::string& second, std::uint32_t blocks = 2) {
  const Module module(kernel_text(kBlock + "@!%p1 bra B;\n" + first + "bra C;\nB:\n" + second + "C:\n"), "test.ptx");
  RunResult result;
  result.out.assign(64, 0);
  std::vector<std::uint32_t> in(4);
  Memory memory;
  const auto in_id = memory.add({.name = "in", .bytes = std::as_writable_bytes(std::span(in))});
  const auto out_id = memory.add({.name = "out", .bytes = std::as_writable_bytes(std::span(result.out))});
  result.report = run(module,
                      {.kernel = "k",
                       .grid = {blocks},
                       .block = {32},
                       .arguments = {pointer_argument(memory, in_id), pointer_argument(memory, out_id)}},
                      memory, {.max_instructions = 200000});
  return result;
}

// ---- bulk copies, 128 bytes

const std::string kStart = kHead + "add.u32 %r4, %t, 7;\nst.shared.u32 [%r3], %r4;\n";
const std::string kFence = "fence.proxy.async.shared::cta;\n", kBarrier = "bar.sync 0;\n";
const std::string kStore =
    "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rout], [%r1], 128;\ncp.async.bulk.commit_group;\n";
const std::string kReduce =
    "st.global.u32 [%rd2], 1;\nbar.sync 0;\n@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rout], "
    "[%r1], 128;\ncp.async.bulk.commit_group;\n";
const std::string kReadTarget = "ld.global.u32 %r5, [%rd2];\n", kWriteSource = "st.shared.u32 [%r3], 5;\n";

RunResult bulk(const std::string& body, std::uint32_t threads = 32) {
  return run_body(kStart + body, counting(32), 32, threads);
}

}  // namespace

TEST_CASE("locks in shared memory") {
  const std::string block_fence = "membar.cta;\n", fence = "fence.acq_rel.cta;\n";
  const auto good = [](const RunResult& result) {
    clean(result);
    CHECK(result.out[0] == 64);
  };
  good(count_under_lock("atom.shared.cas.b32", block_fence, block_fence, "atom.shared.exch.b32 %r3, [lock], 0;"));
  good(count_under_lock("atom.shared.cas.b32", fence, fence, "st.relaxed.cta.shared.u32 [lock], 0;"));
  good(count_under_lock("atom.acquire.cta.shared.cas.b32", "", "", "st.release.cta.shared.u32 [lock], 0;"));
  good(count_under_lock("atom.acq_rel.gpu.shared.cas.b32", "", "", "atom.release.cta.shared.exch.b32 %r3, [lock], 0;"));
  // Neither fence, nor that of the one side.
  for (const auto& [behind, before] : {std::pair<std::string, std::string>{"", ""}, {fence, ""}, {"", fence}}) {
    finds(FindingKind::kSharedRace,
          count_under_lock("atom.shared.cas.b32", behind, before, "atom.shared.exch.b32 %r3, [lock], 0;"), "[count]");
  }
  finds(FindingKind::kSharedRace,
        count_under_lock("atom.relaxed.cta.shared.cas.b32", "", "", "st.release.cta.shared.u32 [lock], 0;"));
}

TEST_CASE("flags in shared memory") {
  const std::string raised = "bar.warp.sync -1;\n@%p1 st.release.cta.shared.u32 [flag], 1;";
  const RunResult good = hand_over(raised, "ld.acquire.cta.shared.u32", "");
  clean(good);
  CHECK(good.out == counting(32));
  clean(hand_over("bar.warp.sync -1;\nmembar.cta;\n@%p1 st.volatile.shared.u32 [flag], 1;", "ld.volatile.shared.u32",
                  "membar.cta;\n"));
  finds(FindingKind::kSharedRace, hand_over(raised, "ld.relaxed.cta.shared.u32", ""), "[s]");
  finds(FindingKind::kSharedRace,
        hand_over("bar.warp.sync -1;\n@%p1 st.volatile.shared.u32 [flag], 1;", "ld.acquire.cta.shared.u32", ""), "[s]");
  // Every lane adds, the last one makes it 32: each atomic goes on with the release of the one before.
  clean(
      hand_over("membar.cta;\natom.shared.inc.u32 %r7, [flag], 40;\nsetp.eq.u32 %p4, %r7, 31;\n"
                "@%p4 atom.shared.exch.b32 %r7, [flag], 1;",
                "ld.acquire.cta.shared.u32", ""));
  // Relaxed atomics order nothing, whichever warp comes first.
  const std::string relaxed = "bar.warp.sync -1;\n@%p1 atom.relaxed.cta.shared.exch.b32 %r7, [flag], 1;";
  finds(FindingKind::kSharedRace, hand_over(relaxed, "ld.relaxed.cta.shared.u32", ""), "[s]");
  finds(FindingKind::kSharedRace, hand_over(relaxed, "ld.acquire.cta.shared.u32", ""), "[s]");
  // What is written behind the release is not released.
  finds(FindingKind::kSharedRace,
        hand_over(raised + "\nadd.u32 %r8, %t, 1;\nst.shared.u32 [%r4], %r8;", "ld.acquire.cta.shared.u32", ""));
}

TEST_CASE("atomic and plain accesses of several blocks") {
  const std::string add = "red.global.add.u32 [%rout], 1;\n", load = "ld.global.u32 %r2, [%rout];\n",
                    store = "st.global.u32 [%rout], 5;\n", strong = "ld.relaxed.gpu.global.u32 %r2, [%rout];\n";
  finds(FindingKind::kGlobalRace, two_blocks(add, load), "another block");
  finds(FindingKind::kGlobalRace, two_blocks(load, add), "another block");
  finds(FindingKind::kGlobalRace, two_blocks(add, store), "another block");
  finds(FindingKind::kGlobalRace, two_blocks(store, add), "another block");
  finds(FindingKind::kGlobalRace, two_blocks(store, strong), "another block");
  finds(FindingKind::kGlobalRace, two_blocks(strong, store), "another block");
  clean(two_blocks(add, add));
  clean(two_blocks(add, strong));
  clean(two_blocks("st.relaxed.gpu.global.u32 [%rout], 5;\n", strong));
  // Beside each other, and each block its own.
  clean(two_blocks(add, "ld.global.u32 %r2, [%rout+4];\nst.global.u32 [%rout+8], %r2;\n"));
  // The guess that a compare-and-swap checks: how CUDA makes atomics that the target has none of.
  const std::string guess =
      "ld.global.u32 %r2, [%rout];\nL{0}: add.u32 %r3, %r2, 1;\natom.global.cas.b32 %r4, [%rout], %r2, %r3;\n"
      "setp.ne.u32 %p2, %r4, %r2;\nmov.u32 %r2, %r4;\n@%p2 bra L{0};\n";
  const RunResult swapped = two_blocks(fmt::format(fmt::runtime(guess), 0), fmt::format(fmt::runtime(guess), 1));
  clean(swapped);
  CHECK(swapped.out[0] == 64);
}

TEST_CASE("blocks that wait for each other") {
  const std::string data =
      "add.u32 %r5, %t, 3;\nmul.wide.u32 %rd1, %t, 4;\nadd.u64 %rd1, %rd1, %rin;\n"
      "setp.eq.u32 %p2, %t, 0;\n@%p2 st.global.u32 [%rin], %r5;\n";
  const auto look = [](const std::string& behind) {
    return "L: ld.volatile.global.u32 %r2, [%rout];\nsetp.eq.u32 %p3, %r2, 0;\n@%p3 bra L;\n" + behind +
           "ld.global.u32 %r6, [%rin];\nst.global.u32 [%rout+4], %r6;\n";
  };
  const std::string raise = "@%p2 atom.global.exch.b32 %r7, [%rout], 1;\n", fence = "membar.gl;\n";
  const RunResult good = two_blocks(data + fence + raise, look(fence));
  clean(good);
  CHECK(good.out[1] == 3);
  clean(two_blocks(data + "@%p2 st.release.gpu.global.u32 [%rout], 1;\n", look("fence.acq_rel.gpu;\n")));
  clean(two_blocks(data + "@%p2 red.release.gpu.global.add.u32 [%rout], 1;\n",
                   "K: atom.acquire.gpu.global.add.u32 %r2, [%rout], 0;\nsetp.eq.u32 %p3, %r2, 0;\n@%p3 bra K;\n"
                   "ld.global.u32 %r6, [%rin];\n"));
  // The fence of either side is missing, or reaches the block only.
  finds(FindingKind::kGlobalRace, two_blocks(data + raise, look(fence)), "[in]");
  finds(FindingKind::kGlobalRace, two_blocks(data + fence + raise, look("")), "[in]");
  finds(FindingKind::kGlobalRace, two_blocks(data + "membar.cta;\n" + raise, look(fence)), "[in]");
}

TEST_CASE("the blocks of a cluster meet before they read each other's global memory") {
  const auto body = [](const std::string& between) {
    return ".reqnctapercluster 2, 1, 1\n{\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\nld.param.u64 %rd1, [p];\n"
           "mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd2, %rd2, %rd1;\nadd.u32 %r2, %r1, 9;\n"
           "st.global.u32 [%rd2], %r2;\n" +
           between +
           "xor.b32 %r1, %r1, 1;\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd2, %rd2, %rd1;\n"
           "ld.global.u32 %r3, [%rd2];\nret;\n}\n";
  };
  const auto run_it = [&](const std::string& between) {
    const Module module(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n" + body(between),
        "test.ptx");
    RunResult result;
    result.out.assign(2, 0);
    Memory memory;
    const auto id = memory.add({.name = "out", .bytes = std::as_writable_bytes(std::span(result.out))});
    result.report =
        run(module, {.kernel = "k", .grid = {2}, .block = {32}, .arguments = {pointer_argument(memory, id)}}, memory);
    return result;
  };
  clean(run_it("barrier.cluster.arrive;\nbarrier.cluster.wait;\n"));
  finds(FindingKind::kGlobalRace, run_it(""));
}

TEST_CASE("a bulk store's target is read behind its group only") {
  const std::string wait = "cp.async.bulk.wait_group 0;\n";
  const RunResult good = bulk(kFence + kBarrier + kStore + wait + kBarrier + kReadTarget);
  clean(good);
  CHECK(good.out[3] == 10);
  // The kernel's end ends the write, but not before the source has been read.
  clean(bulk(kFence + kBarrier + kStore + "cp.async.bulk.wait_group.read 0;\n"));
  finds(FindingKind::kAsyncRead, bulk(kFence + kBarrier + kStore + kBarrier + kReadTarget), "[out]");
  finds(FindingKind::kAsyncRead,
        bulk(kFence + kBarrier + kStore + "cp.async.bulk.wait_group.read 0;\n" + kBarrier + kReadTarget), "[out]");
  finds(FindingKind::kAsyncRead,
        bulk(kFence + kBarrier + kStore + "cp.async.bulk.wait_group 1;\n" + kBarrier + kReadTarget), "[out]");
  finds(FindingKind::kAsyncRead, bulk(kFence + kBarrier + kStore + "st.global.u32 [%rd2], 1;\n"), "[out]");
  // Another thread's wait is for that one's groups; a copy that was not committed is in none.
  finds(FindingKind::kAsyncRead,
        bulk(kFence + kBarrier + kStore + "@!%p1 cp.async.bulk.wait_group 0;\n" + kBarrier + kReadTarget), "[out]");
  std::string uncommitted = kStore;
  uncommitted.resize(uncommitted.find("cp.async.bulk.commit_group"));
  finds(FindingKind::kAsyncRead, bulk(kFence + kBarrier + uncommitted + wait + kBarrier + kReadTarget), "[out]");
  const RunResult reduced = bulk(kFence + kBarrier + kReduce + wait + kBarrier + kReadTarget);
  clean(reduced);
  CHECK(reduced.out[3] == 11);
  finds(FindingKind::kAsyncRead, bulk(kFence + kBarrier + kReduce + kBarrier + kReadTarget), "[out]");
}

TEST_CASE("a bulk store's source is written behind its group only") {
  const std::string read = "cp.async.bulk.wait_group.read 0;\n";
  const RunResult good = bulk(kFence + kBarrier + kStore + read + kBarrier + kWriteSource);
  clean(good);
  CHECK(good.out[3] == 10);
  clean(bulk(kFence + kBarrier + kStore + "cp.async.bulk.wait_group 0;\n" + kBarrier + kWriteSource));
  clean(bulk(kFence + kBarrier + kStore + "ld.shared.u32 %r5, [%r3];\n" + read));
  finds(FindingKind::kAsyncRead, bulk(kFence + kBarrier + kStore + kBarrier + kWriteSource), "[s]");
  finds(FindingKind::kAsyncRead, bulk(kFence + kBarrier + kReduce + kBarrier + kWriteSource), "[s]");
  // Two copies of one source, the first of which is over.
  const std::string second = kStore + "cp.async.bulk.wait_group.read 1;\n" + kBarrier + kWriteSource;
  finds(FindingKind::kAsyncRead, bulk(kFence + kBarrier + kStore + second), "[s]");
  clean(bulk(kFence + kBarrier + kStore + kStore + read + kBarrier + kWriteSource));
  // The wait of one thread says something to the others behind a barrier only.
  const std::string wide = kFence + kBarrier + "setp.gt.u32 %p3, %t, 31;\n@%p3 bra OTHER;\n" + kStore +
                           "bar.sync 1, 64;\n" + read +
                           "{}bra END;\nOTHER:\nbar.sync 1, 64;\n{}mov.u32 %r7, s;\nst.shared.u32 [%r7], 3;\nEND:\n";
  const auto waits_late = [&](const std::string& meet) {
    std::string body = wide;
    for (std::size_t at = body.find("{}"); at != std::string::npos; at = body.find("{}")) body.replace(at, 2, meet);
    return run_body(kStart + body, counting(32), 32, 64);
  };
  clean(waits_late("bar.sync 2, 64;\n"));
  CHECK(!waits_late("").report.findings.empty());
}

TEST_CASE("a block stays until its bulk stores have read their source") {
  clean(bulk(kFence + kBarrier + kStore + "cp.async.bulk.wait_group.read 0;\n"));
  finds(FindingKind::kAsyncRead, bulk(kFence + kBarrier + kStore), "the block exits");
  finds(FindingKind::kAsyncRead, bulk(kFence + kBarrier + kStore + kStore + "cp.async.bulk.wait_group.read 1;\n"),
        "the block exits");
}

TEST_CASE("bulk loads over what threads stored, behind a proxy fence") {
  const RunResult good = bulk(kFence + kBarrier + kLoad + kWait +
                              "ld.shared.u32 %r5, [%r3];\n"
                              "st.global.u32 [%rd2], %r5;\n");
  clean(good);
  CHECK(good.out == counting(32));
  finds(FindingKind::kProxyFence, bulk(kBarrier + kLoad + kWait), "writes asynchronously over what threads stored");
  // The fence of a third warp, that meets the writers before and the issuer behind it.
  const auto third = [](const std::string& fence) {
    return run_body(kStart + kBarrier + "setp.eq.u32 %p3, %r3, %r3;\nsetp.gt.u32 %p4, %t, 31;\n@%p4 " + fence +
                        kBarrier + kLoad + kWait,
                    counting(32), 32, 64);
  };
  clean(third(kFence));
  finds(FindingKind::kProxyFence, third("fence.acq_rel.cta;\n"));
  // Reads need none: an mbarrier or a barrier orders them before the next copy into their slot.
  std::string again = kLoad + kWait + "ld.shared.u32 %r5, [%r3];\n" + kBarrier + kLoad;
  clean(bulk(kFence + kBarrier + again));
}
