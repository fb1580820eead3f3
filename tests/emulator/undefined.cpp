// Loads of memory that nobody has written: reported where the value matters, left alone where it is thrown away.
#include <doctest/doctest.h>

#include "emulator/harness.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

// Odd threads load a word of `s` that nobody has written, into %r5; even ones their own number plus 100.
const std::string kLoad =
    ".shared .align 8 .b8 s[512];\n.local .align 8 .b8 l[16];\n.reg .b32 %x<8>;\n.reg .b64 %y<4>;\nmov.u32 %r1, s;\n"
    "shl.b32 %r2, %t, 3;\nadd.u32 %r2, %r2, %r1;\nand.b32 %r3, %t, 1;\nsetp.eq.u32 %p1, %r3, 0;\nadd.u32 %r4, %t, "
    "100;\n"
    "@%p1 st.shared.u32 [%r2], %r4;\nld.shared.u32 %r5, [%r2];\nmul.wide.u32 %rd1, %t, 4;\nadd.u64 %rd1, %rd1, %rout;\n"
    "mov.u32 %x0, 7;\n";
const std::string kStore = "st.global.u32 [%rd1], %r6;\n";

RunResult run_it(const std::string& body) {
  return run_body(kLoad + body, {1, 2, 3, 4}, 32);
}

void clean(const std::string& body) {
  CAPTURE(body);
  const RunResult result = run_it(body);
  INFO(describe(result.report));
  CHECK(result.report.findings.empty());
}

// Exactly the load is reported, for an odd thread, with the place where its value matters.
void finds(const std::string& body, const std::string& text = "its value is used in line") {
  CAPTURE(body);
  const RunResult result = run_it(body);
  INFO(describe(result.report));
  REQUIRE(result.report.findings.size() == 1);
  const Finding& finding = result.report.findings[0];
  CHECK(finding.kind == FindingKind::kUnwrittenRead);
  CHECK(finding.instruction.substr(0, 3) == "ld.");
  CHECK(finding.thread.x % 2 == 1);
  CHECK(finding.message.find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("a value that nobody has written may be thrown away") {
  clean("");
  clean("add.u32 %r6, %r5, 1;\nmul.lo.u32 %r6, %r6, 3;\n");
  clean("mov.u32 %r6, 1;\n" + kStore);
  // A register's defined lanes are used, and those that were are written again.
  clean("@%p1 st.global.u32 [%rd1], %r5;\n");
  clean("@!%p1 mov.u32 %r5, 3;\nmov.u32 %r6, %r5;\n" + kStore);
  // Selected by a condition that is defined.
  clean("selp.u32 %r6, %r5, 0, %p1;\n" + kStore);
  clean("selp.u32 %r6, 0, %r5, !%p1;\n" + kStore);
  clean("@%p1 mov.u32 %r6, %r5;\n@!%p1 mov.u32 %r6, 1;\n" + kStore);
  // Decided by a defined operand, in either place.
  clean("setp.gt.u32 %p2, %r5, 5;\nand.pred %p3, %p2, %p1;\nselp.u32 %r6, 1, 2, %p3;\n" + kStore);
  clean("setp.gt.u32 %p2, %r5, 5;\nand.pred %p3, %p1, %p2;\n@%p3 bra A;\nexit;\nA:\n");
  clean("setp.gt.u32 %p2, %r5, 5;\nor.pred %p3, %p2, !%p1;\nselp.u32 %r6, 1, 2, %p3;\n" + kStore);
  clean("setp.gt.and.u32 %p3, %r5, 5, %p1;\nselp.u32 %r6, 1, 2, %p3;\n" + kStore);
  clean("setp.gt.or.u32 %p3, %r5, 5, !%p1;\nselp.u32 %r6, 1, 2, %p3;\n" + kStore);
  clean("selp.u32 %x1, -1, 0, %p1;\nand.b32 %r6, %x1, %r5;\n" + kStore);
  clean("and.b32 %r6, %r5, 0;\n" + kStore);
  // Kept in shared or local memory, and nobody reads it.
  clean("st.shared.u32 [%r2+4], %r5;\nst.local.u32 [l], %r5;\n");
}

TEST_CASE("a value that nobody has written matters") {
  finds("mov.u32 %r6, %r5;\n" + kStore);
  finds("add.u32 %r6, %r5, 1;\nsub.u32 %r6, %r6, %x0;\nst.global.v2.u32 [%rout], {%x0, %r6};\n");
  finds("cvt.u64.u32 %y1, %r5;\nmov.b64 {%x1, %x2}, %y1;\nmov.u32 %r6, %x1;\n" + kStore);
  finds("selp.u32 %r6, %r5, 0, !%p1;\n" + kStore);
  finds("setp.gt.u32 %p2, %r5, 5;\nselp.u32 %r6, 1, 2, %p2;\n" + kStore);
  finds("setp.gt.u32 %p2, %r5, 5;\nor.pred %p3, %p2, %p1;\nselp.u32 %r6, 1, 2, %p3;\n" + kStore);
  finds("setp.gt.u32 %p2, %r5, 5;\nand.pred %p3, !%p1, %p2;\nselp.u32 %r6, 1, 2, %p3;\n" + kStore);
  finds("setp.gt.and.u32 %p3, %r5, 5, !%p1;\nselp.u32 %r6, 1, 2, %p3;\n" + kStore);
  finds("setp.gt.u32 %p2, %r5, 5;\nmov.u32 %r6, 1;\n@%p2 mov.u32 %r6, 2;\n" + kStore);
  // Control, addresses, atomics, barriers, members of a warp's exchange.
  finds("setp.gt.u32 %p2, %r5, 5;\n@%p2 bra A;\nadd.u32 %r6, %r6, 1;\nA:\n");
  finds("setp.gt.u32 %p2, %r5, 5;\n@%p2 st.shared.u32 [%r2+4], %x0;\n");
  finds("sub.u32 %x1, %r5, %r5;\nadd.u32 %x1, %x1, %r2;\nld.shared.u32 %r6, [%x1+4];\n");
  finds("and.b32 %x1, %r5, 1;\nand.b32 %x1, %x1, 4;\nadd.u32 %x1, %x1, %r1;\nst.shared.u32 [%x1+508], %x0;\n");
  finds("st.shared.u32 [s+508], 0;\nbar.sync 0;\natom.shared.exch.b32 %r6, [s+508], %r5;\n");
  finds("shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;\n" + kStore);
  finds("setp.gt.u32 %p2, %r5, 5;\nvote.sync.any.pred %p3, %p2, -1;\n@%p3 bra A;\nadd.u32 %r6, %r6, 1;\nA:\n");
  // Through shared and local memory: the load that brings it back is reported too.
  finds("st.shared.u32 [%r2+4], %r5;\nld.shared.u32 %r6, [%r2+4];\n" + kStore);
  finds("st.local.u32 [l+4], %r5;\nld.local.u32 %r6, [l+4];\n" + kStore, "local memory that was never written");
  finds("st.shared.u32 [%r2+4], %r5;\nld.shared.v2.u32 {%x1, %r6}, [%r2];\n" + kStore);
}

TEST_CASE("only the bytes that are missing are undefined") {
  // A vector whose second half was written.
  const std::string half =
      ".shared .align 8 .b8 s[512];\n.reg .b32 %x<8>;\nst.shared.u32 [s+4], 5;\n"
      "ld.shared.v2.u32 {%x1, %x2}, [s];\nst.global.u32 [%rout], {};\n";
  const auto stores = [&](const std::string& value) {
    std::string text = half;
    return run_body(text.replace(text.find("{};"), 3, value + ";"), {0}, 1, 1);
  };
  CHECK(stores("%x2").report.findings.empty());
  CHECK(stores("%x1").has(FindingKind::kUnwrittenRead));
  // Two bytes of four.
  const std::string word = "st.global.u16 [%rout], %h1;\nld.global.u16 %h2, [%rout];\nst.global.u16 [%rout+2], %h2;\n";
  CHECK(run_body(word, {0}, 1, 1).report.findings.empty());
}

TEST_CASE("an undefined value stored where no memory is") {
  for (const char* store : {"st.local.u32 [%y1], %r5;\n", "st.shared.u32 [%y1], %r5;\n", "st.u32 [%y1], %r5;\n",
                            "@%p1 mov.u64 %y1, %rout;\nst.global.u32 [%y1], %x0;\n"}) {
    for (const char* address : {"-4", "-1", "0x7ffffffc", "0xfffffffc", "0x1fffffffc", "0x2fffffffc", "0x1000000"}) {
      CAPTURE(store);
      CAPTURE(address);
      CHECK(run_it("mov.u64 %y1, " + std::string(address) + ";\n" + store).report.findings.size() > 0);
    }
  }
}
