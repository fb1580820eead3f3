// Bulk copies in hand-written PTX: waits that are missing, proxy fences, reductions plain and through tensor maps, maps
// that the kernel makes.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "emulator/bulk_parts.h"
#include "emulator/expect.h"
#include "runtime/emulator/tensor_map.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;
using namespace fusec::emulator::testing::bulk_parts;

namespace {

// Fenced, so that bulk copies see the mbarrier.
const std::string kStart = kHead + "fence.proxy.async.shared::cta;\nbar.sync 0;\n";
const std::string kUse = "ld.shared.u32 %r4, [%r3];\nst.global.u32 [%rd2], %r4;\n";

// A kernel with a third parameter of 128 bytes: a map of an 8 x 8 tensor in `out`, boxes of 8 x 4 without swizzle.
RunResult run_with_map(const std::string& body, Type type, std::uint32_t element_bytes,
                       const std::vector<std::uint32_t>& out) {
  std::string text = kernel_text(body);
  const std::string parameters = ".param .u64 p_out";
  text.replace(text.find(parameters), parameters.size(), parameters + ", .param .align 64 .b8 map[128]");
  const Module module(text, "test.ptx");
  RunResult result;
  result.out = out;
  std::vector<std::uint32_t> in = counting(64);
  Memory memory;
  const auto in_id = memory.add({.name = "in", .bytes = std::as_writable_bytes(std::span(in)), .writable = false});
  const auto out_id = memory.add({.name = "out", .bytes = std::as_writable_bytes(std::span(result.out))});
  const TensorMap map{.address = memory.address(out_id),
                      .element_bytes = element_bytes,
                      .rank = 2,
                      .extents = {8, 8},
                      .strides = {element_bytes, 8 * element_bytes},
                      .box = {8, 4},
                      .type = type};
  result.report =
      run(module,
          {.kernel = "k",
           .block = {32},
           .arguments = {pointer_argument(memory, in_id), pointer_argument(memory, out_id), encode_tensor_map(map)}},
          memory, {.max_instructions = 50000});
  return result;
}

}  // namespace

TEST_CASE("a bulk copy is read behind its mbarrier only") {
  const RunResult good = run_body(kStart + kLoad + kWait + kUse, counting(32), 32);
  clean(good);
  CHECK(good.out == counting(32));
  finds(FindingKind::kAsyncRead, run_body(kStart + kLoad + kUse, counting(32), 32), "without waiting for its mbarrier");
  finds(FindingKind::kAsyncRead, run_body(kStart + kLoad + "bar.sync 0;\n" + kUse, counting(32), 32));
  // Fewer bytes than were expected: nobody ever goes on. More: the phase is over early, which the count shows.
  std::string short_copy = kLoad;
  short_copy.replace(short_copy.rfind("128"), 3, "64");
  const RunResult waiting = run_body(kStart + short_copy + kWait + kUse, counting(32), 32);
  finds(FindingKind::kDeadlock, waiting, "0 of 1 arrivals and 64 bytes of copies are missing in phase 0 [bar]");
}

TEST_CASE("bulk copies have their sizes and alignments") {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string load = kLoad;
    load.replace(load.rfind(from), from.size(), to);
    return run_body(kStart + load, counting(32), 32);
  };
  finds(FindingKind::kMisaligned, with("[%rin]", "[%rin+4]"), "source");
  finds(FindingKind::kMisaligned, with("[%r1]", "[%r1+8]"), "target");
  finds(FindingKind::kMisaligned, with("128", "120"), "size");
  finds(FindingKind::kOutOfBounds, with("[%rin]", "[%rin+16]"), "[in]");
}

TEST_CASE("what threads stored is seen by bulk copies behind a proxy fence") {
  const auto body = [](const std::string& fence) {
    return kStart + "st.shared.u32 [%r3], %t;\n" + fence +
           "bar.sync 0;\n@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rout], [%r1], 128;\n"
           "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
  };
  const RunResult good = run_body(body("fence.proxy.async.shared::cta;\n"), {0}, 32);
  clean(good);
  CHECK(good.out == counting(32));
  clean(run_body(body("fence.proxy.async;\n"), {0}, 32));
  finds(FindingKind::kProxyFence, run_body(body(""), {0}, 32), "fence.proxy.async");
  finds(FindingKind::kProxyFence, run_body(body("fence.proxy.alias;\n"), {0}, 32));
}

TEST_CASE("bulk reductions") {
  const auto reduced = [](const std::string& op, const std::string& value, std::uint32_t start) {
    const RunResult result =
        run_body(kStart + "st.global.u32 [%rd2], " + std::to_string(start) + ";\n" + value +
                     "st.shared.b32 [%r3], %r4;\nfence.proxy.async;\nbar.sync 0;\n"
                     "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group." +
                     op + " [%rout], [%r1], 128;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n",
                 {0}, 32);
    clean(result);
    return result.out[5];
  };
  const std::string lane = "mov.u32 %r4, %t;\n", real = "cvt.rn.f32.u32 %r4, %t;\n";
  CHECK(reduced("add.u32", lane, 100) == 105);
  CHECK(reduced("min.s32", lane, 3) == 3);
  CHECK(reduced("max.u32", lane, 3) == 5);
  CHECK(reduced("and.b32", lane, 6) == 4);
  CHECK(reduced("or.b32", lane, 6) == 7);
  CHECK(reduced("xor.b32", lane, 6) == 3);
  CHECK(reduced("inc.u32", lane, 5) == 0);
  CHECK(reduced("dec.u32", lane, 0) == 5);
  CHECK(reduced("add.f32", real, bits_of(0.5f)) == bits_of(5.5f));
  CHECK(reduced("add.noftz.f16", "mov.u32 %r4, 0x3c004000;\n", 0x3c003c00) == 0x40004200);
  CHECK(reduced("max.bf16", "mov.u32 %r4, 0x3f80c000;\n", 0x3f000000) == 0x3f800000);
  CHECK(reduced("add.u64", lane, 1) == 6);
}

TEST_CASE("reductions through a tensor map, of the map's element type") {
  const auto body = [](const std::string& op) {
    return kStart +
           "st.shared.u32 [%r3], %r5;\nfence.proxy.async;\nbar.sync 0;\nmov.b64 %rd5, map;\ncvta.param.u64 %rd5, "
           "%rd5;\n@%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta." +
           op +
           ".tile.bulk_group [%rd5, {0, 6}], [%r1];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\n";
  };
  // Rows 6 and 7 of the tensor are rows 0 and 1 of the box; what lies beyond its edge is dropped.
  const RunResult integers =
      run_with_map("add.u32 %r5, %t, 1;\n" + body("add"), Type::kU32, 4, std::vector<std::uint32_t>(64, 100));
  clean(integers);
  for (std::uint32_t i = 0; i < 64; ++i) CHECK(integers.out[i] == (i < 48 ? 100 : 100 + i - 47));
  const RunResult reals = run_with_map("mov.b32 %r5, 0f3F000000;\n" + body("add"), Type::kF32, 4,
                                       std::vector<std::uint32_t>(64, bits_of(1.0f)));
  clean(reals);
  CHECK(reals.out[47] == bits_of(1.0f));
  CHECK(reals.out[48] == bits_of(1.5f));
  const RunResult most =
      run_with_map("mov.u32 %r5, %t;\n" + body("max"), Type::kS32, 4, std::vector<std::uint32_t>(64, 0xfffffff0));
  clean(most);
  CHECK(most.out[50] == 2);
  // Every operation of a type; word 50 meets lane 2.
  const auto reduced = [&](const std::string& op, Type type, std::uint32_t start, const std::string& value) {
    const RunResult result = run_with_map(value + body(op), type, 4, std::vector<std::uint32_t>(64, start));
    clean(result);
    return result.out[50];
  };
  const std::string lane = "mov.u32 %r5, %t;\n";
  CHECK(reduced("min", Type::kU32, 0xfffffff0, lane) == 2);
  CHECK(reduced("min", Type::kS32, 0xfffffff0, lane) == 0xfffffff0);
  CHECK(reduced("inc", Type::kU32, 2, lane) == 0);
  CHECK(reduced("dec", Type::kU32, 0, lane) == 2);
  CHECK(reduced("and", Type::kS32, 6, lane) == 2);
  CHECK(reduced("or", Type::kU32, 5, lane) == 7);
  CHECK(reduced("xor", Type::kU32, 3, lane) == 1);
  for (const auto& [op, type] : {std::pair<std::string, Type>{"add", Type::kNone},
                                 {"add", Type::kU16},
                                 {"min", Type::kF32},
                                 {"inc", Type::kS32},
                                 {"xor", Type::kF32}}) {
    finds(FindingKind::kTrap, run_with_map(lane + body(op), type, 4, std::vector<std::uint32_t>(64)), "element type");
  }
}

TEST_CASE("of a stored box, what lies outside of the tensor need not have been written") {
  // Lanes write two rows of the box's four, from row 5 or 6 of the tensor's eight on.
  const auto stored = [](const std::string& row) {
    return run_with_map(kStart +
                            "setp.lt.u32 %p2, %t, 16;\n@%p2 st.shared.u32 [%r3], %t;\nfence.proxy.async;\nbar.sync "
                            "0;\nmov.b64 %rd5, map;\ncvta.param.u64 %rd5, %rd5;\n@%p1 "
                            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd5, {0, " +
                            row + "}], [%r1];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\n",
                        Type::kU32, 4, std::vector<std::uint32_t>(64, 100));
  };
  const RunResult last = stored("6");
  clean(last);
  for (std::uint32_t i = 0; i < 64; ++i) CHECK(last.out[i] == (i < 48 ? 100 : i - 48));
  finds(FindingKind::kUnwrittenRead, stored("5"));
}

TEST_CASE("a tensor map made by the kernel") {
  // An 8 x 8 tensor of 32-bit words in `in`, read by a box of 8 x 4 from row 2 on.
  const auto body = [](const std::string& replace) {
    return R"(
      .shared .align 128 .b8 made[128];
      mov.u32 %r6, made;
      add.u32 %r7, %r6, %r3;
      sub.u32 %r7, %r7, %r1;
      st.shared.u32 [%r7], 0;
      bar.warp.sync -1;
    )" + replace +
           R"(
      tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r6], %rin;
      tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r6], 1;
      tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r6], 0, 8;
      tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r6], 1, 4;
      tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r6], 0, 8;
      tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r6], 1, 8;
      tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r6], 0, 32;
      tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r6], 0, 1;
      tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r6], 1, 1;
      tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r6], 0x2;
      tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r6], 0x0;
      tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r6], 0x0;
      bar.warp.sync -1;
      tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rout+128], [%r6], 128;
      fence.proxy.tensormap::generic.acquire.gpu [%rout+128], 128;
      add.u64 %rd5, %rout, 128;
      @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
      @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd5, {0, 2}], [%r2];
    )";
  };
  const std::string swizzle = "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r6], {};\n";
  const RunResult good =
      run_body(kStart + body(fmt::format(fmt::runtime(swizzle), "0x0")) + kWait + kUse, counting(64), 64);
  INFO(describe(good.report));
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(good.out[t] == 16 + t);
  CHECK(!good.has(FindingKind::kTrap));
  finds(FindingKind::kTrap, run_body(kStart + body(fmt::format(fmt::runtime(swizzle), "9")), counting(64), 64),
        "tensormap.replace");
}

TEST_CASE("boxes of one to five dimensions, beyond every edge") {
  constexpr int kExtent[5] = {7, 3, 4, 3, 2}, kBox[5] = {4, 2, 3, 2, 2};
  for (int rank = 1; rank <= 5; ++rank) {
    for (const int from : {-1, 0, 1, 2}) {
      for (const bool fill_nan : {false, true}) {
        CAPTURE(rank);
        CAPTURE(from);
        TensorMap map{.element_bytes = 4, .rank = static_cast<std::uint32_t>(rank), .fill_nan = fill_nan};
        std::uint64_t count = 1;
        std::size_t elements = 1;
        std::string coordinates;
        for (std::size_t d = 0; d < static_cast<std::size_t>(rank); ++d) {
          map.extents[d] = static_cast<std::uint64_t>(kExtent[d]);
          map.box[d] = static_cast<std::uint32_t>(kBox[d]);
          map.strides[d] = count * 4;
          count *= d == 0 ? 8 : map.extents[d];  // lines of eight words, as strides are multiples of 16 bytes
          elements *= map.box[d];
          coordinates += fmt::format("{}{}", d == 0 ? "" : ", ", from);
        }
        std::string text = kernel_text(
            kStart +
            fmt::format("mov.b64 %rd5, map;\ncvta.param.u64 %rd5, %rd5;\n"
                        "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {0};\n"
                        "@%p1 cp.async.bulk.tensor.{1}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                        "[%r1], [%rd5, {{{2}}}], [%r2];\n",
                        elements * 4, rank, coordinates) +
            kWait +
            fmt::format("mov.u32 %r5, %t;\nC: setp.ge.u32 %p3, %r5, {};\n@%p3 bra D;\nld.shared.u32 %r4, [%r3];\n"
                        "st.global.u32 [%rd2], %r4;\nadd.u32 %r3, %r3, 128;\nadd.u64 %rd2, %rd2, 128;\n"
                        "add.u32 %r5, %r5, 32;\nbra C;\nD:\n",
                        elements));
        const std::string parameters = ".param .u64 p_out";
        text.replace(text.find(parameters), parameters.size(), parameters + ", .param .align 64 .b8 map[128]");
        const Module module(text, "test.ptx");
        std::vector<std::uint32_t> in = counting(count), out(elements);
        Memory memory;
        const auto in_id =
            memory.add({.name = "in", .bytes = std::as_writable_bytes(std::span(in)), .writable = false});
        const auto out_id = memory.add({.name = "out", .bytes = std::as_writable_bytes(std::span(out))});
        map.address = memory.address(in_id);
        const Report report = run(
            module,
            {.kernel = "k",
             .block = {32},
             .arguments = {pointer_argument(memory, in_id), pointer_argument(memory, out_id), encode_tensor_map(map)}},
            memory, {.max_instructions = 50000});
        INFO(describe(report));
        REQUIRE(report.findings.empty());
        for (std::size_t i = 0; i < elements; ++i) {
          std::size_t rest = i;
          std::uint64_t address = 0;
          bool inside = true;
          for (std::size_t d = 0; d < static_cast<std::size_t>(rank); ++d) {
            const int at = from + static_cast<int>(rest % map.box[d]);
            rest /= map.box[d];
            inside = inside && at >= 0 && at < kExtent[d];
            address += static_cast<std::uint64_t>(at) * map.strides[d];
          }
          const bool is_nan = (out[i] & 0x7fffffffu) > 0x7f800000u;
          if (inside)
            REQUIRE(out[i] == address / 4);
          else
            REQUIRE((fill_nan ? is_nan : out[i] == 0));
        }
      }
    }
  }
}
