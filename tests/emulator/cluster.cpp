// Clusters in hand-written PTX: distributed shared memory with its defects, st.async, red.async, mapa, cluster
// barriers.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "emulator/expect.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

constexpr const char* kMeet = "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n";

// Two blocks of 32 threads in one cluster. %r10: the rank, %r11: the word `s[t]` of this block, %r12: that of the
// other, %rd2: the block's and thread's element of `out`; an mbarrier `bar` with its addresses here (%r13) and there
// (%r14).
RunResult run_pair(const std::string& body, std::size_t words = 64) {
  const std::string head = R"(
    .shared .align 16 .b8 s[512];
    .shared .align 8 .b64 bar;
    .reg .b32 %other;
    mov.u32 %r10, %cluster_ctarank;
    xor.b32 %other, %r10, 1;
    mov.u32 %r11, s;
    shl.b32 %r1, %t, 2;
    add.u32 %r11, %r11, %r1;
    mapa.shared::cluster.u32 %r12, %r11, %other;
    mov.u32 %r13, bar;
    mapa.shared::cluster.u32 %r14, %r13, %other;
    mad.lo.u32 %r1, %r10, 32, %t;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd2, %rd2, %rout;
    setp.eq.u32 %p1, %t, 0;
  )";
  const Module module(kernel_text(head + body), "test.ptx");
  RunResult result;
  result.out.assign(words, 0);
  Memory memory;
  std::vector<std::uint32_t> in(1);
  const auto in_id = memory.add({.name = "in", .bytes = std::as_writable_bytes(std::span(in)), .writable = false});
  const auto out_id = memory.add({.name = "out", .bytes = std::as_writable_bytes(std::span(result.out))});
  result.report = run(module,
                      {.kernel = "k",
                       .grid = {2},
                       .block = {32},
                       .cluster = {2, 1, 1},
                       .arguments = {pointer_argument(memory, in_id), pointer_argument(memory, out_id)}},
                      memory, {.max_instructions = 50000});
  return result;
}

}  // namespace

TEST_CASE("blocks of a cluster exchange words of their shared memory") {
  const auto body = [](const std::string& between, const std::string& end) {
    return "mad.lo.u32 %r2, %r10, 100, %t;\nst.shared.u32 [%r11], %r2;\n" + between +
           "ld.shared::cluster.u32 %r3, [%r12];\nst.global.u32 [%rd2], %r3;\n" + end;
  };
  const RunResult good = run_pair(body(kMeet, kMeet));
  clean(good);
  for (std::uint32_t t = 0; t < 32; ++t) {
    CHECK(good.out[t] == 100 + t);
    CHECK(good.out[32 + t] == t);
  }
  // A barrier of the block alone does not bring the other block's stores.
  finds(FindingKind::kSharedRace, run_pair("st.shared.u32 [%r11], 7;\n" + std::string(kMeet) +
                                           "st.shared.u32 [%r11], %t;\nbar.sync 0;\n" + body("", kMeet)));
  // The other block's memory is gone when it has exited.
  finds(FindingKind::kSharedRace, run_pair(body(kMeet, "")), "exit");
}

TEST_CASE("stores into another block's shared memory") {
  const auto body = [](const std::string& before, const std::string& between) {
    return "st.shared.u32 [%r11], 1;\n" + before + "st.shared::cluster.u32 [%r12], %t;\n" + between +
           "ld.shared.u32 %r3, [%r11];\nst.global.u32 [%rd2], %r3;\n" + kMeet;
  };
  const RunResult good = run_pair(body(kMeet, kMeet));
  clean(good);
  CHECK(good.out[37] == 5);
  finds(FindingKind::kSharedRace, run_pair(body(kMeet, "bar.sync 0;\n")), "block");
  finds(FindingKind::kSharedRace, run_pair(body("bar.sync 0;\n", kMeet)), "block");
  // Written over while the other block may still be reading.
  const auto reads_first = [](const std::string& between) {
    return "st.shared.u32 [%r11], %t;\n" + std::string(kMeet) + "ld.shared::cluster.u32 %r3, [%r12];\n" + between +
           "st.shared.u32 [%r11], 1000;\nst.global.u32 [%rd2], %r3;\n" + kMeet;
  };
  clean(run_pair(reads_first(kMeet)));
  finds(FindingKind::kSharedRace, run_pair(reads_first("")), "read by");
}

TEST_CASE("a block's shared memory is used once all blocks of the cluster have started") {
  const std::string store = "st.shared::cluster.u32 [%r12], %t;\n";
  clean(run_pair(kMeet + store + kMeet + "ld.shared.u32 %r1, [%r11];\n"));
  finds(FindingKind::kSharedRace, run_pair(store + kMeet + "ld.shared.u32 %r1, [%r11];\n"), "may not have started");
}

TEST_CASE("a relaxed arrival at the barrier of the cluster releases what was fenced only") {
  const std::string write = "st.shared.u32 [%r11], %t;\n";
  const std::string relaxed = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;\n";
  const std::string read = "ld.shared::cluster.u32 %r9, [%r12];\nst.global.u32 [%rd2], %r9;\n";
  const std::string fence = "fence.acq_rel.cluster;\n";
  clean(run_pair(write + fence + relaxed + read + relaxed));
  clean(run_pair(write + kMeet + read + relaxed));
  finds(FindingKind::kSharedRace, run_pair(write + relaxed + read + relaxed), "[s]");
  finds(FindingKind::kSharedRace, run_pair(fence + write + relaxed + read + relaxed), "[s]");
  // What the other block wrote here.
  const std::string give = "st.shared::cluster.u32 [%r12], %t;\n";
  const std::string take = "ld.shared.u32 %r9, [%r11];\nst.global.u32 [%rd2], %r9;\n";
  clean(run_pair(kMeet + give + fence + relaxed + take));
  finds(FindingKind::kSharedRace, run_pair(kMeet + give + relaxed + take), "[s]");
}

TEST_CASE("a thread arrives at the barrier of the cluster once a phase") {
  clean(run_pair(std::string(kMeet) + kMeet));
  finds(FindingKind::kBarrierDivergence,
        run_pair("barrier.cluster.arrive;\n@%p1 barrier.cluster.arrive;\nbarrier.cluster.wait;\n"), "again");
}

TEST_CASE("atomics of two blocks on one word") {
  const std::string start = "st.shared.u32 [%r11], 0;\n" + std::string(kMeet) +
                            "mov.u32 %r2, s;\nmapa.shared::cluster.u32 %r3, %r2, 0;\n"
                            "atom.shared::cluster.add.u32 %r4, [%r3], 1;\n";
  const RunResult good =
      run_pair(start + kMeet + "ld.shared::cluster.u32 %r5, [%r3];\nst.global.u32 [%rd2], %r5;\n" + kMeet);
  clean(good);
  CHECK(good.out[0] == 64);
  CHECK(good.out[63] == 64);
  finds(FindingKind::kSharedRace, run_pair(start + "bar.sync 0;\nld.shared::cluster.u32 %r5, [%r3];\n" + kMeet));
}

TEST_CASE("an mbarrier of another block orders what its arrivals did") {
  const auto body = [](const std::string& arrive, const std::string& wait) {
    return "@%p1 mbarrier.init.shared::cta.b64 [%r13], 32;\nst.shared.u32 [%r11], 0;\n"
           "fence.mbarrier_init.release.cluster;\n" +
           std::string(kMeet) + "st.shared::cluster.u32 [%r12], %t;\n" + arrive + wait +
           "ld.shared.u32 %r3, [%r11];\nst.global.u32 [%rd2], %r3;\n" + kMeet;
  };
  const std::string arrive = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r14];\n";
  const std::string wait =
      "W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r13], 0;\n@!%p2 bra W;\n";
  const RunResult good = run_pair(body(arrive, wait));
  clean(good);
  CHECK(good.out[40] == 8);
  finds(FindingKind::kSharedRace, run_pair(body(arrive, "bar.sync 0;\n")), "block");
}

TEST_CASE("st.async brings words and completes bytes") {
  const auto body = [](const std::string& wait) {
    return "@%p1 mbarrier.init.shared::cta.b64 [%r13], 1;\nfence.mbarrier_init.release.cluster;\n" +
           std::string(kMeet) +
           "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13], 128;\nmad.lo.u32 %r2, %r10, 100, %t;\n"
           "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r12], %r2, [%r14];\n" +
           wait + "ld.shared.u32 %r3, [%r11];\nst.global.u32 [%rd2], %r3;\n" + kMeet;
  };
  const RunResult good = run_pair(body("W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r13], 0;\n@!%p2 bra W;\n"));
  clean(good);
  for (std::uint32_t t = 0; t < 32; ++t) {
    CHECK(good.out[t] == 100 + t);
    CHECK(good.out[32 + t] == t);
  }
  // A cluster barrier is no wait for the mbarrier.
  finds(FindingKind::kAsyncRead, run_pair(body(kMeet)), "without waiting for its mbarrier");
  // Vectors of 64-bit values: 32 bytes a thread.
  const RunResult wide = run_pair(
      "@%p1 mbarrier.init.shared::cta.b64 [%r13], 1;\nfence.mbarrier_init.release.cluster;\n" + std::string(kMeet) +
      "@!%p1 bra W;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13], 16;\n"
      "mov.u64 %rd5, 0x200000001;\nmov.u64 %rd6, 0x400000003;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%r12], {%rd5, %rd6}, [%r14];\n"
      "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r13], 0;\n@!%p2 bra W;\n"
      "setp.lt.u32 %p3, %t, 4;\n@%p3 ld.shared.u32 %r3, [%r11];\n@%p3 st.global.u32 [%rd2], %r3;\n" +
      kMeet);
  clean(wide);
  CHECK(std::vector(wide.out.begin() + 32, wide.out.begin() + 36) == std::vector<std::uint32_t>{1, 2, 3, 4});
}

TEST_CASE("red.async updates a word and completes bytes") {
  // Every thread of each block updates the other's word 0; it begins as 1000.
  const auto result = [](const std::string& op, const std::string& operand = "%t") {
    const RunResult run = run_pair(
        "@%p1 mbarrier.init.shared::cta.b64 [%r13], 1;\nst.shared.u32 [%r11], 1000;\n"
        "fence.mbarrier_init.release.cluster;\n" +
        std::string(kMeet) +
        "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13], 128;\n"
        "mov.u32 %r2, s;\nmapa.shared::cluster.u32 %r3, %r2, %other;\n"
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." +
        op + " [%r3], " + operand +
        ", [%r14];\n"
        "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r13], 0;\n@!%p2 bra W;\n"
        "ld.shared.u32 %r4, [%r2];\nst.global.u32 [%rd2], %r4;\n" +
        kMeet);
    clean(run);
    CHECK(run.out[0] == run.out[63]);
    return run.out[0];
  };
  CHECK(result("add.u32") == 1000 + 31 * 32 / 2);
  CHECK(result("min.u32") == 0);
  CHECK(result("max.s32") == 1000);
  CHECK(result("and.b32") == 0);
  CHECK(result("or.b32") == (1000 | 31));
  CHECK(result("xor.b32") == 1000);        // 0 ^ 1 ^ ... ^ 31 is 0
  CHECK(result("inc.u32", "1015") == 16);  // 15 steps to 1015, then to 0, then 16 more
  CHECK(result("dec.u32", "2000") == 968);
}

TEST_CASE("ranks and addresses of a cluster") {
  const RunResult result = run_pair(R"(
    getctarank.shared::cluster.u32 %r2, %r12;
    getctarank.shared::cluster.u32 %r3, %r11;
    mov.u64 %rd5, s;
    cvta.shared.u64 %rd5, %rd5;
    mapa.u64 %rd6, %rd5, %other;
    getctarank.u32 %r4, %rd6;
    mov.u32 %r5, %cluster_nctarank;
    mov.u32 %r6, %cluster_ctaid.x;
    mov.u32 %r7, %clusterid.x;
    mad.lo.u32 %r2, %r3, 10, %r2;
    mad.lo.u32 %r2, %r4, 100, %r2;
    mad.lo.u32 %r2, %r5, 1000, %r2;
    mad.lo.u32 %r2, %r6, 10000, %r2;
    mad.lo.u32 %r2, %r7, 100000, %r2;
    st.global.u32 [%rd2], %r2;
  )");
  clean(result);
  CHECK(result.out[0] == 2101);
  CHECK(result.out[32] == 12010);
  finds(FindingKind::kOutOfBounds, run_pair("mapa.shared::cluster.u32 %r2, %r11, 2;\n"), "rank");
}
