// Kernels that never end: each kind of wait that nobody can end, found without its budget being spent, and its twin
// that somebody ends, late and from where it is least expected.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>

#include "emulator/expect.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

// Mostly with the budget that everybody has, which must not be spent on each of many blocks.
RunResult timed(const std::string& body, std::uint32_t threads, std::uint32_t blocks, const Options& options = {}) {
  const auto begin = std::chrono::steady_clock::now();
  RunResult result = run_body(body, {0}, 4096, threads, blocks, ".global .align 4 .u32 polled = 0;\n", options);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
  return result;
}

const std::string kBarrier =
    ".shared .align 8 .b64 bar;\n.shared .align 4 .b32 flag;\nmov.u32 %r1, bar;\nsetp.eq.u32 %p1, %t, 0;\n"
    "@%p1 mbarrier.init.shared::cta.b64 [%r1], 2;\n@%p1 st.shared.u32 [flag], 0;\nbar.sync 0;\n";
const std::string kWait = "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;\n@!%p2 bra W;\n";
const std::string kArrive = "mbarrier.arrive.shared::cta.b64 %rd1, [%r1];\n";

}  // namespace

TEST_CASE("a wait for an mbarrier that nobody completes is a deadlock, at once") {
  finds(FindingKind::kDeadlock, timed(kBarrier + kWait, 64, 64),
        "waits for a phase of the mbarrier at 0x0 that nobody can complete: 2 of 2 arrivals and 0 bytes");
  finds(FindingKind::kDeadlock, timed(kBarrier + "@%p1 " + kArrive + kWait, 64, 1), "1 of 2 arrivals");
  clean(timed(kBarrier + "setp.eq.u32 %p3, %t, 33;\nor.pred %p3, %p3, %p1;\n@%p3 " + kArrive + kWait, 64, 64));
  // One warp waits for the other, which waits at a barrier for the first.
  const std::string crossed =
      "setp.ge.u32 %p3, %t, 32;\n@%p3 bra B;\n" + kWait + "bar.sync 1;\nexit;\nB:\nbar.sync 1;\n";
  const RunResult both = timed(kBarrier + crossed, 64, 1);
  finds(FindingKind::kDeadlock, both, "waits for a phase of the mbarrier");
  finds(FindingKind::kDeadlock, both, "waits at barrier 1, which not all threads reach: 32 of 64 have come");
  // The other warp computes for long before it arrives.
  const std::string late =
      "setp.ge.u32 %p3, %t, 32;\n@!%p3 bra A;\nmov.u32 %r2, 0;\nL:\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p4, %r2, "
      "200000;\n@%p4 bra L;\nsetp.lt.u32 %p5, %t, 34;\n@%p5 " +
      kArrive + "A:\n" + kWait;
  clean(timed(kBarrier + late, 64, 1));
  // A wait that gives up after some tries ends by itself.
  clean(timed(kBarrier + "mov.u32 %r2, 0;\nG: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;\n@%p2 bra D;\n"
                         "add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p3, %r2, 1000;\n@%p3 bra G;\nD:\n",
              64, 1));
}

TEST_CASE("a loop that changes nothing never ends, which is known at once") {
  finds(FindingKind::kRunaway, timed("L: bra L;\n", 32, 64), "loops for ever");
  finds(FindingKind::kRunaway,
        timed(kBarrier + "L: ld.volatile.shared.u32 %r2, [flag];\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra L;\n", 64, 64),
        "loops for ever");
  // Half of a warp spins on what the other half stores behind the place where both meet.
  clean(timed(kBarrier + "setp.lt.u32 %p3, %t, 16;\n@%p3 bra S;\nL: ld.volatile.shared.u32 %r2, [flag];\n"
                         "setp.eq.u32 %p2, %r2, 0;\n@%p2 bra L;\nexit;\nS:\n@%p1 st.volatile.shared.u32 [flag], 1;\n",
              32, 1));
}

TEST_CASE("blocks that poll what no block changes") {
  const std::string poll =
      "mov.u32 %r2, 0;\nL: add.u32 %r2, %r2, 1;\nld.volatile.global.u32 %r1, [polled];\nsetp.ne.u32 %p2, %r1, {};\n"
      "@%p2 bra L;\n";
  const std::string set =
      "mov.u32 %r5, %ctaid.x;\nsetp.eq.u32 %p1, %r5, {};\n@%p1 st.volatile.global.u32 [polled], {};\n";
  const auto body = [&](int block, int value, int wanted) {
    return fmt::format(fmt::runtime(set), block, value) + fmt::format(fmt::runtime(poll), wanted);
  };
  finds(FindingKind::kRunaway, timed(body(0, 1, 2), 256, 64), "poll memory that nobody changes");
  finds(FindingKind::kRunaway, timed(body(0, 1, 2), 64, 16, {.threads = 2, .max_instructions = 1u << 22}),
        "poll memory that nobody changes");
  // The last block of many brings it to all that have waited since they started.
  clean(timed(body(70, 2, 2), 64, 71));
  clean(timed(body(70, 2, 2), 64, 71, {.threads = 2}));
  // With atomics, as locks do.
  const std::string lock = "L: atom.global.cas.b32 %r1, [polled], {}, 1;\nsetp.ne.u32 %p2, %r1, {};\n@%p2 bra L;\n";
  finds(FindingKind::kRunaway, timed(fmt::format(fmt::runtime(lock), 7, 7), 1, 4, {.max_instructions = 1u << 22}),
        "poll memory");
}

TEST_CASE("a sample that leaves out the blocks that its own wait for") {
  // Each block waits for the one before it.
  const std::string chain =
      "mov.u32 %r5, %ctaid.x;\nL: ld.volatile.global.u32 %r1, [polled];\nsetp.lt.u32 %p1, %r1, %r5;\n@%p1 bra L;\n"
      "add.u32 %r5, %r5, 1;\nst.volatile.global.u32 [polled], %r5;\n";
  clean(timed(chain, 1, 64));
  finds(FindingKind::kRunaway, timed(chain, 1, 64, {.max_instructions = 1u << 22, .sample_blocks = 4}),
        "blocks that the sample leaves out");
}

TEST_CASE("a block looks twice in vain, however many turns it waits; a sample has whole cohorts") {
  // So many blocks as come one after the other wait for one another, by tickets.
  const std::string body =
      "atom.global.add.u32 %r1, [polled], 1;\nshr.u32 %r1, %r1, 2;\nmov.u64 %rd1, of_four;\n"
      "mul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd1, %rd1, %rd2;\nred.release.gpu.global.add.u32 [%rd1], 1;\n"
      "L: ld.acquire.gpu.global.u32 %r2, [%rd1];\nsetp.ge.u32 %p1, %r2, 4;\n@%p1 bra D;\nnanosleep.u32 20;\nbra L;\n"
      "D:\n";
  const Module module(kernel_text(body, ".global .align 4 .u32 polled = 0;\n.global .align 4 .u32 of_four[100];\n"),
                      "test.ptx");
  const auto counted = [&](const Options& options) {
    Memory memory;
    std::vector<std::uint32_t> unused(1);
    const auto in = memory.add({.name = "in", .bytes = std::as_writable_bytes(std::span(unused))});
    const Launch launch{.kernel = "k",
                        .grid = {400},
                        .block = {1},
                        .resident_blocks = 4,
                        .arguments = {pointer_argument(memory, in), pointer_argument(memory, in)}};
    const Report report = run(module, launch, memory, options);
    CHECK_MESSAGE(report.findings.empty(), describe(report));
    return report.counters;
  };
  const auto loads = [](const Counters& counters) {
    return counters.warp_instructions[static_cast<std::size_t>(InstructionClass::kLoadStore)];
  };
  // Two of parameters, two in vain, and one that sees all.
  for (const int threads : {1, 2}) CHECK(loads(counted({.threads = threads})) <= 5 * 400);
  CHECK(counted({.sample_blocks = 6}).blocks == 8);
}

TEST_CASE("what takes longer counts for more of the budget") {
  const auto executed = [](const std::string& loop, const std::string& head) {
    const RunResult result =
        timed(head + "L: " + loop + "ld.volatile.global.u32 %r1, [polled];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\n",
              256, 1, {.max_instructions = 1u << 22});
    finds(FindingKind::kRunaway, result, "budget of instructions");
    std::uint64_t sum = 0;
    for (const std::uint64_t of_class : result.report.counters.warp_instructions) sum += of_class;
    return sum;
  };
  const std::uint64_t plain = executed("add.u32 %r9, %r9, 1;\nst.global.u32 [%rout], %r9;\n", "mov.u32 %r9, 0;\n");
  CHECK(executed("atom.global.add.u32 %r2, [%rout], 1;\n", "st.global.u32 [%rout], 0;\nbar.sync 0;\n") < plain);
  CHECK(executed("bar.sync 0;\nadd.u32 %r9, %r9, 1;\n", "mov.u32 %r9, 0;\n") < plain);
}

TEST_CASE("the first block that spends its budget ends the launch") {
  const std::string stores =
      "mov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1;\nmov.u32 %r3, %ctaid.x;\n"
      "mul.wide.u32 %rd1, %r3, 4;\nadd.u64 %rd1, %rd1, %rout;\nst.global.u32 [%rd1], %r1;\n";
  const Options small{.max_instructions = 1u << 20};
  const RunResult result = timed(stores + "bra L;\n", 1, 4096, small);
  finds(FindingKind::kRunaway, result, "budget of instructions");
  CHECK(result.report.counters.warp_instructions[static_cast<std::size_t>(InstructionClass::kInteger)] < (1u << 21));
  // As many blocks whose budgets together are large: each may spend its own.
  clean(timed(stores + "setp.lt.u32 %p1, %r1, 3000;\n@%p1 bra L;\n", 1, 300, {.max_instructions = 1u << 16}));
}
