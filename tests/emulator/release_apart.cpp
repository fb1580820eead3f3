// Several readers of a word that are released apart, before it is written again; and parts of a warp that meet apart.
// Each with the defect and its clean twin.
#include <doctest/doctest.h>

#include "emulator/expect.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

// Warps 0 and 1 read the word that lane x of warp 2 writes over; what each does between, and what warp 2 waits for.
RunResult two_readers(const std::string& first, const std::string& second, const std::string& wait) {
  return run_body(
      ".shared .align 4 .b8 s[128];\n.shared .align 8 .b64 m0;\n.shared .align 8 .b64 m1;\n"
      ".shared .align 4 .b32 f0;\n.shared .align 4 .b32 f1;\nand.b32 %r1, %t, 31;\nshl.b32 %r1, %r1, 2;\n"
      "mov.u32 %r2, s;\nadd.u32 %r2, %r2, %r1;\nmov.u32 %r4, 0;\nsetp.eq.u32 %p1, %t, 0;\n"
      "@%p1 mbarrier.init.shared.b64 [m0], 32;\n@%p1 mbarrier.init.shared.b64 [m1], 32;\n"
      "@%p1 st.shared.u32 [f0], 0;\n@%p1 st.shared.u32 [f1], 0;\nsetp.lt.u32 %p2, %t, 32;\n"
      "@%p2 st.shared.u32 [%r2], %t;\nbar.sync 0;\nsetp.ge.u32 %p3, %t, 64;\nsetp.ge.u32 %p4, %t, 32;\n"
      "@%p3 bra WRITE;\nld.shared.u32 %r4, [%r2];\n@%p4 bra SECOND;\n" +
          first + "bra END;\nSECOND:\n" + second + "bra END;\nWRITE:\n" + wait +
          "st.shared.u32 [%r2], 7;\nEND:\nmul.wide.u32 %rd1, %t, 4;\nadd.u64 %rd1, %rd1, %rout;\n"
          "st.global.u32 [%rd1], %r4;\n",
      {0}, 96, 96);
}

std::string arrive(const std::string& barrier) {
  return "mbarrier.arrive.shared.b64 %rd1, [" + barrier + "];\n";
}
std::string wait(const std::string& barrier, const std::string& label) {
  return label + ": mbarrier.try_wait.parity.shared::cta.b64 %p5, [" + barrier + "], 0;\n@!%p5 bra " + label + ";\n";
}
std::string raise(const std::string& flag) {
  return "bar.warp.sync 0xffffffff;\nsetp.eq.u32 %p6, %r1, 0;\n@%p6 red.release.cta.shared.add.u32 [" + flag +
         "], 1;\n";
}
std::string look(const std::string& flag, const std::string& count, const std::string& label) {
  return label + ": ld.acquire.cta.shared.u32 %r5, [" + flag + "];\nsetp.ne.u32 %p5, %r5, " + count + ";\n@%p5 bra " +
         label + ";\n";
}

// Every lane stores its word and reads that of the lane `distance` bytes further, behind what they do between.
RunResult exchange(const std::string& between, const std::string& distance) {
  return run_body(
      ".shared .align 4 .b8 s[128];\nmov.u32 %r1, s;\nshl.b32 %r2, %t, 2;\nadd.u32 %r3, %r1, %r2;\n"
      "xor.b32 %r4, %r2, " +
          distance + ";\nadd.u32 %r4, %r4, %r1;\nst.shared.u32 [%r3], %t;\nsetp.lt.u32 %p1, %t, 16;\n" + between +
          "ld.shared.u32 %r5, [%r4];\nmul.wide.u32 %rd1, %t, 4;\nadd.u64 %rd1, %rd1, %rout;\n"
          "st.global.u32 [%rd1], %r5;\n",
      {0}, 32);
}

}  // namespace

TEST_CASE("two readers arrive at two mbarriers") {
  const std::string both = wait("m0", "A") + wait("m1", "B");
  clean(two_readers(arrive("m0"), arrive("m1"), both));
  clean(two_readers(arrive("m0"), arrive("m1"), wait("m1", "A") + wait("m0", "B")));
  finds(FindingKind::kSharedRace, two_readers(arrive("m0"), arrive("m1"), wait("m0", "A")), "[s]");
  finds(FindingKind::kSharedRace, two_readers(arrive("m0"), arrive("m1"), wait("m1", "A")), "[s]");
  // The second waits for the first, and stands for both.
  clean(two_readers(arrive("m0"), wait("m0", "A") + arrive("m1"), wait("m1", "B")));
}

TEST_CASE("two readers raise flags") {
  clean(two_readers(raise("f0"), raise("f1"), look("f0", "1", "A") + look("f1", "1", "B")));
  finds(FindingKind::kSharedRace, two_readers(raise("f0"), raise("f1"), look("f0", "1", "A")), "[s]");
  finds(FindingKind::kSharedRace, two_readers(raise("f0"), raise("f1"), look("f1", "1", "A")), "[s]");
  // One counter for both.
  clean(two_readers(raise("f0"), raise("f0"), look("f0", "2", "A")));
}

TEST_CASE("a reader writes again once the others have read") {
  const std::string reads = "ld.shared.u32 %r4, [%r2];\n";
  clean(two_readers(arrive("m0"), arrive("m1"), reads + wait("m0", "A") + wait("m1", "B")));
  finds(FindingKind::kSharedRace, two_readers(arrive("m0"), arrive("m1"), reads + wait("m1", "A")), "[s]");
}

TEST_CASE("a barrier of lanes orders those of its mask") {
  const std::string halves = "@%p1 bra LOW;\nbar.warp.sync 0xffff0000;\nbra GO;\nLOW: bar.warp.sync 0x0000ffff;\nGO:\n";
  clean(exchange("bar.warp.sync 0xffffffff;\n", "64"));
  clean(exchange(halves, "32"));
  finds(FindingKind::kSharedRace, exchange(halves, "64"), "[s]");
  // One instruction, masks by lane.
  const std::string selected = "selp.u32 %r6, 0x0000ffff, 0xffff0000, %p1;\nbar.warp.sync %r6;\n";
  clean(exchange(selected, "32"));
  finds(FindingKind::kSharedRace, exchange(selected, "64"), "[s]");
  // Order is passed on: quarters with their neighbours, then every other quarter.
  const std::string quarters =
      "and.b32 %r7, %t, 8;\nsetp.eq.u32 %p2, %r7, 0;\nselp.u32 %r7, 0x00ff00ff, 0xff00ff00, %p2;\n"
      "bar.warp.sync %r7;\n";
  clean(exchange(quarters, "64"));
  finds(FindingKind::kSharedRace, exchange(quarters, "32"), "[s]");
  clean(exchange(quarters + selected, "96"));
}

TEST_CASE("an aligned barrier is for whole warps") {
  const auto guarded = [](const std::string& threads, const std::string& barrier) {
    return run_body("setp.lt.u32 %p1, %t, " + threads + ";\n@%p1 " + barrier + " 0;\nst.global.u32 [%rout], 1;\n", {0},
                    1, 64);
  };
  finds(FindingKind::kBarrierDivergence, guarded("48", "bar.sync"), "aligned");
  finds(FindingKind::kBarrierDivergence, guarded("48", "barrier.sync.aligned"), "aligned");
  clean(guarded("32", "bar.sync"));
  clean(guarded("48", "barrier.sync"));
  // Lanes that have left early are not missed: so compilers translate a return before __syncthreads().
  clean(
      run_body("setp.ge.u32 %p1, %t, 48;\n@%p1 bra END;\nbar.sync 0;\nst.global.u32 [%rout], 1;\nEND:\n", {0}, 1, 64));
}
