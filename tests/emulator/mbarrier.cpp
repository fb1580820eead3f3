// mbarrier objects, operation by operation, in hand-written PTX.
#include <doctest/doctest.h>

#include "emulator/expect.h"
#include "emulator/harness.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

// One thread; %r1 is an mbarrier of `count` arrivals. `body` ends with the words to store in %r2 and %r3.
RunResult one_thread(const std::string& count, const std::string& body) {
  return run_body(
      ".shared .align 8 .b64 bar;\nmov.u32 %r1, bar;\nmov.u32 %r2, 0;\nmov.u32 %r3, 0;\n"
      "mbarrier.init.shared::cta.b64 [%r1], " +
          count + ";\n" + body + "\nst.global.v2.u32 [%rout], {%r2, %r3};",
      {0}, 2, 1, 1, {}, {.max_instructions = 20000});
}

std::vector<std::uint32_t> words(const std::string& count, const std::string& body) {
  const RunResult result = one_thread(count, body);
  INFO(describe(result.report));
  CHECK(result.report.findings.empty());
  return result.out;
}

using Words = std::vector<std::uint32_t>;

// Whether phase 0 is over, as a word.
std::string over(const std::string& reg) {
  return "mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r1], 0;\nselp.u32 " + reg + ", 1, 0, %p1;\n";
}

}  // namespace

TEST_CASE("a phase ends with its last arrival") {
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 %rd1, [%r1];\n";
  CHECK(words("2", arrive + over("%r2") + arrive + over("%r3")) == Words{0, 1});
  CHECK(words("3", "mbarrier.arrive.shared::cta.b64 %rd1, [%r1], 2;\n" + over("%r2") + arrive + over("%r3")) ==
        Words{0, 1});
  // The state of an arrival waits for that very phase; the next one needs its own arrivals.
  CHECK(words("1", arrive + "mbarrier.test_wait.shared::cta.b64 %p1, [%r1], %rd1;\nselp.u32 %r2, 1, 0, %p1;\n"
                            "mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r1], 1;\nselp.u32 %r3, 1, 0, %p1;\n") ==
        Words{1, 0});
  CHECK(words("1", arrive + arrive +
                       "mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r1], 1;\nselp.u32 %r2, 1, 0, %p1;\n"
                       "mbarrier.try_wait.shared::cta.b64 %p1, [%r1], %rd1, 100;\nselp.u32 %r3, 1, 0, %p1;\n") ==
        Words{1, 1});
  CHECK(one_thread("1", "mbarrier.arrive.shared::cta.b64 %rd1, [%r1], 2;\n").has(FindingKind::kBarrierDivergence));
  CHECK(one_thread("0", "").has(FindingKind::kBarrierDivergence));
}

TEST_CASE("arrivals that drop out leave one less for the phases to come") {
  const std::string drop = "mbarrier.arrive_drop.shared::cta.b64 %rd1, [%r1];\n";
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 %rd1, [%r1];\n";
  const std::string next = "mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r1], 1;\nselp.u32 %r3, 1, 0, %p1;\n";
  CHECK(words("2", drop + arrive + over("%r2") + arrive + next) == Words{1, 1});
  CHECK(words("2", arrive + arrive + over("%r2") + arrive + next) == Words{1, 0});
}

TEST_CASE("pending arrivals of a state") {
  CHECK(words("5",
              "mbarrier.arrive.shared::cta.b64 %rd1, [%r1];\nmbarrier.pending_count.b64 %r2, %rd1;\n"
              "mbarrier.arrive.shared::cta.b64 %rd1, [%r1];\nmbarrier.pending_count.b64 %r3, %rd1;\n") == Words{5, 4});
}

TEST_CASE("a phase ends when all expected bytes are there as well") {
  CHECK(words("1", "mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [%r1], 64;\n" + over("%r2") +
                       "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 64;\n" + over("%r3")) == Words{0, 1});
  CHECK(words("1",
              "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 64;\n"
              "mbarrier.arrive.shared::cta.b64 %rd1, [%r1];\n" +
                  over("%r2") + "mbarrier.complete_tx.shared::cta.b64 [%r1], 32;\n" +
                  "mbarrier.complete_tx.shared::cta.b64 [%r1], 32;\n" + over("%r3")) == Words{0, 1});
}

TEST_CASE("an mbarrier that is no more, or never was") {
  const RunResult gone = one_thread("1", "mbarrier.inval.shared::cta.b64 [%r1];\n" + over("%r2"));
  CHECK(gone.has(FindingKind::kUnwrittenRead));
  CHECK(words("1",
              "mbarrier.inval.shared::cta.b64 [%r1];\nmbarrier.init.shared::cta.b64 [%r1], 1;\n"
              "mbarrier.arrive.shared::cta.b64 %rd1, [%r1];\n" +
                  over("%r2")) == Words{1, 0});
}

TEST_CASE("a live mbarrier is neither initialized again nor stored into") {
  const std::string again = "mbarrier.init.shared::cta.b64 [%r1], 1;\n",
                    inval = "mbarrier.inval.shared::cta.b64 [%r1];\n", store = "st.shared.u32 [%r1+4], 0;\n";
  CHECK(one_thread("1", again).has(FindingKind::kBarrierDivergence));
  CHECK(one_thread("1", store).has(FindingKind::kSharedRace));
  CHECK(words("1", inval + again) == Words{0, 0});
  CHECK(words("1", inval + store) == Words{0, 0});
}

TEST_CASE("other warps use an mbarrier behind its initialization") {
  const auto meet_there = [](const std::string& first, const std::string& between) {
    return run_body(".shared .align 8 .b64 bar;\nsetp.eq.u32 %p1, %t, " + first +
                        ";\n@%p1 mbarrier.init.shared.b64 [bar], 64;\n" + between +
                        "mbarrier.arrive.shared.b64 %rd1, [bar];\nW: mbarrier.test_wait.shared.b64 %p2, [bar], %rd1;\n"
                        "@!%p2 bra W;\nst.global.u32 [%rout], 1;\n",
                    {0}, 1, 64, 1, {}, {.max_instructions = 20000});
  };
  clean(meet_there("0", "bar.sync 0;\n"));
  clean(meet_there("40", "bar.sync 0;\n"));
  finds(FindingKind::kSharedRace, meet_there("0", ""), "mbarrier");
  // Whoever comes first meets one that is not initialized at all.
  CHECK(!meet_there("40", "").report.findings.empty());
}

TEST_CASE("cp.async arrives when its copies are there") {
  const auto body = [](const std::string& arrive, const std::string& wait) {
    return ".shared .align 16 .b8 s[512];\n.shared .align 8 .b64 bar;\nmov.u32 %r1, bar;\nmov.u32 %r2, s;\n"
           "setp.eq.u32 %p1, %t, 0;\n@%p1 mbarrier.init.shared::cta.b64 [%r1], 32;\nbar.sync 0;\n"
           "shl.b32 %r3, %t, 4;\nadd.u32 %r3, %r3, %r2;\ncp.async.ca.shared.global [%r3], [%rin], 16;\n" +
           arrive + wait +
           "ld.shared.u32 %r4, [%r2+496];\nmul.wide.u32 %rd1, %t, 4;\nadd.u64 %rd1, %rd1, %rout;\n"
           "st.global.u32 [%rd1], %r4;\n";
  };
  const std::string arrive = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r1];\n";
  const std::string wait = "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;\n@!%p2 bra W;\n";
  const RunResult good = run_body(body(arrive, wait), {9, 9, 9, 9}, 32);
  INFO(describe(good.report));
  CHECK(good.report.findings.empty());
  CHECK(good.out == Words(32, 9));
  // Without .noinc one arrival more is expected for each: the 32 of the phase must come from elsewhere.
  const std::string counted = "cp.async.mbarrier.arrive.shared::cta.b64 [%r1];\n";
  CHECK(run_body(body(counted, wait), {9, 9, 9, 9}, 32).has(FindingKind::kDeadlock));
  const RunResult both =
      run_body(body(counted + "mbarrier.arrive.shared::cta.b64 %rd2, [%r1];\n", wait), {9, 9, 9, 9}, 32);
  INFO(describe(both.report));
  CHECK(both.report.findings.empty());
  // Nobody waited: read too early.
  CHECK(run_body(body("", ""), {9, 9, 9, 9}, 32).has(FindingKind::kAsyncRead));
}
