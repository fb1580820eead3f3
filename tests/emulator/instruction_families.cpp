// Instructions that other files only use on the way, each by itself: carries in full, shuffles and reductions of every
// kind, fences, hints, vectors, and the words that are refused.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "emulator/expect.h"
#include "ir/error.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

// %r2 of every lane after `body`, which also finds each lane's address in %rd1.
std::vector<std::uint32_t> lanes(const std::string& body) {
  const RunResult result = run_body(
      "mul.wide.u32 %rd1, %t, 4;\nadd.u64 %rd1, %rd1, %rout;\n" + body + ";\nst.global.u32 [%rd1], %r2;", {0}, 32);
  clean(result);
  return result.out;
}

bool refused(const std::string& body) {
  try {
    Module(kernel_text(body), "a.ptx").kernel("k");
  } catch (const fusec::Error&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("carries through 96 bits") {
  const RunResult sum = run_body(
      "mov.u32 %r1, 0xffffffff;\nadd.cc.u32 %r2, %r1, 1;\naddc.cc.u32 %r3, %r1, 0;\naddc.u32 %r4, 5, 6;\n"
      "st.global.u32 [%rout], %r2;\nst.global.u32 [%rout+4], %r3;\nst.global.u32 [%rout+8], %r4;\n"
      "sub.cc.u32 %r2, 0, 1;\nsubc.cc.u32 %r3, 0, 0;\nsubc.u32 %r4, 9, 3;\n"
      "st.global.u32 [%rout+12], %r2;\nst.global.u32 [%rout+16], %r3;\nst.global.u32 [%rout+20], %r4;\n"
      "mad.lo.cc.u32 %r2, %r1, %r1, 0xffffffff;\nmadc.hi.cc.u32 %r3, %r1, %r1, 0;\nmadc.lo.u32 %r4, 3, 4, 5;\n"
      "st.global.u32 [%rout+24], %r2;\nst.global.u32 [%rout+28], %r3;\nst.global.u32 [%rout+32], %r4;\n"
      "add.cc.u64 %rd1, -1, 1;\naddc.u64 %rd2, 0, 0;\nst.global.u64 [%rout+40], %rd2;\n",
      {0}, 12, 1);
  // (2^32 - 1)^2 + 2^32 - 1 = (2^32 - 1) * 2^32: low word 0 with a carry of 0xfffffffe's neighbour.
  CHECK(std::vector(sum.out.begin(), sum.out.begin() + 9) ==
        std::vector<std::uint32_t>{0, 0, 12, 0xffffffff, 0xffffffff, 5, 0, 0xffffffff, 17});
  CHECK(sum.out[10] == 1);
}

TEST_CASE("24-bit products with a sum") {
  CHECK(evaluate("mad24.lo.u32 %d, %a0, %a1, %a2", "b32", {{"b32", 0xff000003}, {"b32", 5}, {"b32", 7}}) == 22);
  CHECK(evaluate("mad24.hi.u32 %d, %a0, %a1, %a2", "b32", {{"b32", 0x800000}, {"b32", 0x200}, {"b32", 7}}) == 0x10007);
  CHECK(evaluate("mad24.lo.s32 %d, %a0, %a1, %a2", "b32", {{"b32", 0xffffff}, {"b32", 5}, {"b32", 7}}) == 2);
  // .sat: bits 47 to 16 of the product, the sum held within 32 bits.
  const auto saturated = [](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    return evaluate("mad24.hi.sat.s32 %d, %a0, %a1, %a2", "b32", {{"b32", a}, {"b32", b}, {"b32", c}});
  };
  CHECK(saturated(0x7fffff, 0x7fffff, 0x7fffffff) == 0x7fffffff);
  CHECK(saturated(0x800000, 0x7fffff, 0x80000000) == 0x80000000);
  CHECK(saturated(0x800000, 0x800000, 0xffffffff) == 0x3fffffff);
  CHECK(saturated(0xffffff, 1, 0) == 0xffffffff);  // -1 >> 16
}

TEST_CASE("reductions of a warp: every operation") {
  CHECK(lanes("redux.sync.add.s32 %r2, %t, -1")[3] == 496);
  CHECK(lanes("redux.sync.min.u32 %r2, %t, -1")[3] == 0);
  CHECK(lanes("sub.s32 %r1, %t, 40;\nredux.sync.min.s32 %r2, %r1, -1")[3] == static_cast<std::uint32_t>(-40));
  CHECK(lanes("sub.s32 %r1, %t, 40;\nredux.sync.max.u32 %r2, %r1, -1")[3] == static_cast<std::uint32_t>(-9));
  CHECK(lanes("or.b32 %r1, %t, 64;\nredux.sync.and.b32 %r2, %r1, -1")[3] == 64);
  CHECK(lanes("redux.sync.or.b32 %r2, %t, -1")[3] == 31);
  CHECK(lanes("shl.b32 %r1, 1, %t;\nredux.sync.xor.b32 %r2, %r1, -1")[3] == 0xffffffff);
  CHECK(lanes("cvt.rn.f32.u32 %f1, %t;\nneg.f32 %f1, %f1;\nredux.sync.min.f32 %r2, %f1, -1")[3] == bits_of(-31.0f));
  CHECK(lanes("cvt.rn.f32.u32 %f1, %t;\nneg.f32 %f1, %f1;\nredux.sync.max.abs.f32 %r2, %f1, -1")[3] == bits_of(31.0f));
}

TEST_CASE("matches of 64-bit values, and of all") {
  CHECK(lanes("and.b32 %r1, %t, 1;\ncvt.u64.u32 %rd3, %r1;\nshl.b64 %rd3, %rd3, 40;\n"
              "match.any.sync.b64 %r2, %rd3, -1")[2] == 0x55555555);
  CHECK(lanes("match.all.sync.b32 %r2|%p2, 7, -1;\n@!%p2 mov.u32 %r2, 1")[2] == 0xffffffff);
}

TEST_CASE("lane masks and places") {
  CHECK(lanes("mov.u32 %r2, %lanemask_eq")[5] == 0x20);
  CHECK(lanes("mov.u32 %r2, %lanemask_le")[5] == 0x3f);
  CHECK(lanes("mov.u32 %r2, %lanemask_ge")[5] == 0xffffffe0);
  CHECK(lanes("mov.u32 %r2, %lanemask_gt")[5] == 0xffffffc0);
  CHECK(lanes("mov.u32 %r2, %laneid")[5] == 5);
  CHECK(lanes("mov.u32 %r2, %warpid")[5] == 0);
  CHECK(lanes("mov.u32 %r2, %nctaid.x;\nmov.u32 %r3, %nctaid.y;\nadd.u32 %r2, %r2, %r3")[5] == 2);
}

TEST_CASE("fences, hints and sleeps change no value") {
  CHECK(
      lanes(
          "mov.u32 %r2, 7;\nmembar.cta;\nmembar.gl;\nmembar.sys;\nfence.sc.cta;\nfence.acq_rel.gpu;\n"
          "fence.acq_rel.cluster;\nnanosleep.u32 10;\nprefetch.global.L1 [%rin];\nprefetchu.L1 [%rin];\n"
          "prefetch.global.L2::evict_last [%rin];\napplypriority.global.L2::evict_normal [%rin], 128;\n"
          "griddepcontrol.launch_dependents;\ngriddepcontrol.wait;\nsetmaxnreg.dec.sync.aligned.u32 40;\n"
          "setmaxnreg.inc.sync.aligned.u32 232;\npmevent 1;\n"
          "createpolicy.fractional.L2::evict_first.L2::evict_first.b64 %rd3, 1.0;\n"
          "cp.async.bulk.prefetch.L2.global [%rin], 16;\nfence.proxy.alias;\nfence.mbarrier_init.release.cluster")[9] ==
      7);
}

TEST_CASE("words that an instruction does not have are refused") {
  for (const std::string body :
       {"setmaxnreg.dec.sync.aligned.u32 41;",
        "setmaxnreg.dec.sync.aligned.u32 264;",
        "setmaxnreg.sync.aligned.u32 40;",
        "griddepcontrol.frob;",
        "prefetch.global.L9 [%rin];",
        "createpolicy.frob.b64 %rd1, 1.0;",
        "fence.proxy.frob;",
        "fence.frob.gpu;",
        "cp.async.bulk.prefetch.L2.frob [%rin], 16;",
        "bar.frob 0;",
        "ld.global.frob.u32 %r1, [%rin];",
        "st.async.shared::cluster.u32 [%r1], %r2, [%r3];",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.f32 [%r1], %r2, [%r3];",
        "tensormap.replace.tile.frob.shared::cta.b1024.b32 [%r1], 1;",
        "shfl.sync.frob.b32 %r1, %r2, 1, 31, -1;",
        "vote.sync.frob.pred %p1, %p2, -1;",
        "atom.global.frob.u32 %r1, [%rin], 1;",
        "atom.global.add.s16 %h1, [%rin], %h1;",
        "cvt.rn.u32.u64 %r1, %rd1, %rd2;",
        "add.rz.sat.f64 %rd1, %rd2, %rd3;",
        "sin.approx.f64 %rd1, %rd2;",
        "fma.rn.f32x3 %f1, %f2, %f3, %f4;",
        "wgmma.frob.sync.aligned;",
        "mbarrier.frob.b64 [%r1];",
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;"}) {
    CAPTURE(body);
    CHECK(refused(body));
  }
}

TEST_CASE("loads and stores of every width") {
  // Bytes 0x80 + i; narrow loads extend by their type.
  std::vector<std::uint32_t> in;
  for (std::uint32_t i = 0; i < 16; ++i) in.push_back(0x83828180 + i * 0x04040404);
  const auto loaded = [&in](const std::string& load, const std::string& kind) {
    const RunResult result = run_body("mov.b64 %rd1, 0;\nmov.u32 %r2, 0;\n" + load + ";\nst.global." + kind +
                                          " [%rout], " + (kind == "b64" ? "%rd1" : "%r2") + ";",
                                      in, 2, 1);
    clean(result);
    return kind == "b64" ? result.out[0] | static_cast<std::uint64_t>(result.out[1]) << 32 : result.out[0];
  };
  CHECK(loaded("ld.global.u8 %r2, [%rin+1]", "b32") == 0x81);
  CHECK(loaded("ld.global.s8 %r2, [%rin+1]", "b32") == 0xffffff81);
  CHECK(loaded("ld.global.u16 %r2, [%rin+2]", "b32") == 0x8382);
  CHECK(loaded("ld.global.s16 %r2, [%rin+2]", "b32") == 0xffff8382);
  CHECK(loaded("ld.global.s8 %rd1, [%rin+1]", "b64") == 0xffffffffffffff81);
  CHECK(loaded("ld.global.s32 %rd1, [%rin]", "b64") == 0xffffffff83828180);
  CHECK(loaded("ld.global.u32 %rd1, [%rin]", "b64") == 0x83828180);
  CHECK(loaded("ld.global.nc.b64 %rd1, [%rin+8]", "b64") == 0x8f8e8d8c8b8a8988);
  CHECK(loaded("ldu.global.u32 %r2, [%rin+4]", "b32") == 0x87868584);
  CHECK(loaded("ld.volatile.global.u32 %r2, [%rin+4]", "b32") == 0x87868584);
  CHECK(loaded("ld.relaxed.sys.global.u32 %r2, [%rin+4]", "b32") == 0x87868584);
  CHECK(loaded("ld.acquire.cta.global.u32 %r2, [%rin+4]", "b32") == 0x87868584);
  CHECK(loaded("ld.global.v4.u8 {_, _, %r2, _}, [%rin+4]", "b32") == 0x86);
  CHECK(loaded("ld.global.v2.b64 {_, %rd1}, [%rin+16]", "b64") == 0x9f9e9d9c9b9a9998);
  CHECK(loaded("ld.global.v2.u16 {_, %r2}, [%rin+4]", "b32") == 0x8786);
  for (const char* hint : {"ca", "cg", "cs", "cv", "L1::evict_last.L2::128B", "nc.L1::no_allocate.L2::256B"})
    CHECK(loaded(fmt::format("ld.global.{}.u32 %r2, [%rin]", hint), "b32") == 0x83828180);
  const RunResult stored = run_body(
      "ld.global.u32 %r1, [%rin];\nmov.b64 %rd1, {%r1, %r1};\nst.global.u64 [%rout], 0;\nst.global.u64 [%rout+8], 0;\n"
      "st.global.u8 [%rout+1], %r1;\nst.global.u16 [%rout+6], %rd1;\nst.global.v2.u8 [%rout+8], {%r1, %r1};\n"
      "st.release.gpu.global.u16 [%rout+12], %r1;\nst.wt.global.u8 [%rout+15], %r1;\n",
      in, 4, 1);
  clean(stored);
  CHECK(stored.out == std::vector<std::uint32_t>{0x8000, 0x81800000, 0x8080, 0x80008180});
}

TEST_CASE("reductions without a result") {
  const auto reduced = [](const std::string& op, std::uint32_t start) {
    const RunResult result =
        run_body("st.global.u32 [%rout], " + std::to_string(start) + ";\nred.global." + op + ";", {0}, 1, 1);
    clean(result);
    return result.out[0];
  };
  CHECK(reduced("add.u32 [%rout], 5", 7) == 12);
  CHECK(reduced("min.s32 [%rout], -5", 7) == static_cast<std::uint32_t>(-5));
  CHECK(reduced("max.u32 [%rout], 5", 7) == 7);
  CHECK(reduced("inc.u32 [%rout], 7", 7) == 0);
  CHECK(reduced("dec.u32 [%rout], 9", 0) == 9);
  CHECK(reduced("and.b32 [%rout], 5", 6) == 4);
  CHECK(reduced("or.b32 [%rout], 5", 6) == 7);
  CHECK(reduced("xor.b32 [%rout], 5", 6) == 3);
  CHECK(reduced("add.f32 [%rout], 0f3F800000", bits_of(2.0f)) == bits_of(3.0f));
  const RunResult vector = run_body(
      "st.global.v4.b32 [%rout], {0, 0, 0, 0};\nmov.b32 %f1, 0f3F800000;\n"
      "red.global.v4.f32.add [%rout], {%f1, %f1, %f1, %f1};\nred.global.v2.f32.add [%rout+8], {%f1, %f1};",
      {0}, 4, 1);
  clean(vector);
  CHECK(vector.out == std::vector<std::uint32_t>{bits_of(1.0f), bits_of(1.0f), bits_of(2.0f), bits_of(2.0f)});
}
