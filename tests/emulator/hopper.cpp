// mbarriers, bulk copies, tensor maps, wgmma and clusters: kernels compiled by nvcc for sm_90a, and their defects.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "emulator/compile.h"
#include "emulator/harness.h"
#include "runtime/emulator/tensor_map.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

const Module* kernels() {
  return compiled_module("kernels_sm90.cu", "sm_90a");
}

template <class T>
Memory::Id add(Memory& memory, const char* name, std::vector<T>& values, bool is_output) {
  return memory.add({.name = name,
                     .bytes = std::as_writable_bytes(std::span(values)),
                     .initialized = !is_output,
                     .writable = is_output});
}

bool has(const Report& report, FindingKind kind) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [kind](const Finding& finding) { return finding.kind == kind; });
}

}  // namespace

TEST_SUITE("nvcc") {
  TEST_CASE("bulk copies in and out") {
    if (kernels() == nullptr) return;
    for (int mistake : {0, 1, 2}) {
      CAPTURE(mistake);
      std::vector<float> x(128), y(128);
      for (int i = 0; i < 128; ++i) x[i] = i;
      Memory memory;
      const auto xi = add(memory, "x", x, false), yi = add(memory, "y", y, true);
      const Report report = run(*kernels(),
                                {.kernel = "bulk_copy",
                                 .block = {64},
                                 .arguments = {pointer_argument(memory, xi), pointer_argument(memory, yi),
                                               scalar_argument(128), scalar_argument(mistake)}},
                                memory);
      INFO(describe(report));
      CHECK(report.findings.empty() == (mistake == 0));
      CHECK(has(report, FindingKind::kAsyncRead) == (mistake == 1));
      CHECK(has(report, FindingKind::kProxyFence) == (mistake == 2));
      for (int i = 0; i < 128; ++i) CHECK(y[i] == 2 * i);
      if (mistake == 0) CHECK(report.counters.sectors_read == 16);
    }
  }

  TEST_CASE("a box of a tensor: beyond the edge are zeros, swizzled rows") {
    if (kernels() == nullptr) return;
    const int rows = 10, columns = 20;
    std::vector<float> x(rows * columns);
    for (int i = 0; i < rows * columns; ++i) x[i] = 1 + i;
    for (std::uint32_t swizzle : {0u, 64u}) {
      for (const auto& [x0, y0] : {std::pair{0, 0}, {8, 4}, {-4, -2}}) {
        Memory memory;
        std::vector<float> out(8 * 16);
        const auto xi = add(memory, "x", x, false), oi = add(memory, "out", out, true);
        const TensorMap map{.address = memory.address(xi),
                            .element_bytes = 4,
                            .rank = 2,
                            .swizzle = swizzle,
                            .extents = {columns, rows},
                            .strides = {4, columns * 4},
                            .box = {16, 8}};
        const Report report = run(*kernels(),
                                  {.kernel = "tensor_box",
                                   .block = {32},
                                   .arguments = {encode_tensor_map(map), pointer_argument(memory, oi),
                                                 scalar_argument(x0), scalar_argument(y0)}},
                                  memory);
        INFO(describe(report));
        CHECK(report.findings.empty());
        for (int r = 0; r < 8; ++r) {
          for (int c = 0; c < 16; ++c) {
            const int row = y0 + r, column = x0 + c;
            const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
            // 64-byte rows: chunk c / 4 changes places with chunk c / 4 ^ (row / 2 % 4).
            const int at = swizzle == 0 ? r * 16 + c : r * 16 + ((c / 4) ^ (r / 2 % 4)) * 4 + c % 4;
            CHECK(out[at] == (inside ? x[row * columns + column] : 0));
          }
        }
      }
    }
  }

  TEST_CASE("a warp-group product fed by tensor maps") {
    if (kernels() == nullptr) return;
    const int k = 256;
    std::mt19937 random(9);
    std::vector<std::uint16_t> a(64 * k), b(32 * k);
    std::vector<double> av, bv;
    const auto fill = [&](std::vector<std::uint16_t>& halves, std::vector<double>& values) {
      const std::uint16_t magnitudes[3] = {0, 0x3c00, 0x4000};
      for (std::uint16_t& half : halves) {
        const int value = static_cast<int>(random() % 5) - 2;
        half = static_cast<std::uint16_t>(magnitudes[std::abs(value)] | (value < 0 ? 0x8000 : 0));
        values.push_back(value);
      }
    };
    fill(a, av);
    fill(b, bv);
    std::vector<float> c(64 * 32);
    Memory memory;
    const auto ai = add(memory, "a", a, false), bi = add(memory, "b", b, false), ci = add(memory, "c", c, true);
    const auto map = [&](Memory::Id id, std::uint32_t rows) {
      return encode_tensor_map({.address = memory.address(id),
                                .element_bytes = 2,
                                .rank = 2,
                                .swizzle = 128,
                                .extents = {k, rows},
                                .strides = {2, k * 2},
                                .box = {64, rows}});
    };
    const Report report =
        run(*kernels(),
            {.kernel = "warp_group_gemm",
             .block = {160},
             .arguments = {map(ai, 64), map(bi, 32), pointer_argument(memory, ci), scalar_argument(k)}},
            memory);
    INFO(describe(report));
    CHECK(report.findings.empty());
    CHECK(report.counters.tensor_multiply_adds == 64 * 32 * k);
    for (int i = 0; i < 64; ++i) {
      for (int j = 0; j < 32; ++j) {
        double sum = 0;
        for (int p = 0; p < k; ++p) sum += av[i * k + p] * bv[j * k + p];
        REQUIRE(c[i * 32 + j] == sum);
      }
    }
  }

  TEST_CASE("distributed shared memory of a cluster") {
    if (kernels() == nullptr) return;
    std::vector<int> out(8 * 32);
    Memory memory;
    const auto oi = add(memory, "out", out, true);
    const Report report =
        run(*kernels(),
            {.kernel = "neighbours", .grid = {8}, .block = {32}, .arguments = {pointer_argument(memory, oi)}}, memory);
    INFO(describe(report));
    CHECK(report.findings.empty());
    for (int block = 0; block < 8; ++block) {
      for (int t = 0; t < 32; ++t) CHECK(out[block * 32 + t] == (block / 4 * 4 + (block + 1) % 4) * 100 + 31 - t);
    }
    CHECK(run(*kernels(),
              {.kernel = "neighbours", .grid = {6}, .block = {32}, .arguments = {pointer_argument(memory, oi)}}, memory)
              .findings.at(0)
              .kind == FindingKind::kLaunch);
  }
}

TEST_CASE("mbarriers count arrivals, by threads and phases") {
  const auto body = [](const std::string& count) {
    return "mov.u32 %r1, bar;\n.shared .align 8 .b64 bar;\n.shared .align 4 .b8 s[256];\nsetp.eq.u32 %p1, %t, 0;\n@%p1 "
           "mbarrier.init.shared.b64 [%r1], " +
           count +
           ";\nbar.sync 0;\nshl.b32 %r2, %t, 2;\nmov.u32 %r3, s;\nadd.u32 %r2, %r2, %r3;\nst.shared.u32 [%r2], %t;\n"
           "mbarrier.arrive.shared.b64 %rd1, [%r1];\nL:\nmbarrier.test_wait.shared.b64 %p2, [%r1], %rd1;\n@!%p2 bra "
           "L;\n"
           "ld.shared.u32 %r4, [%r3+252];\nmul.wide.u32 %rd2, %t, 4;\nadd.u64 %rd2, %rd2, %rout;\nst.global.u32 "
           "[%rd2], %r4;";
  };
  const std::string fixed = "mov.u32 %r1, bar;\n";
  const auto text = [&](const std::string& count) {
    std::string made = body(count);
    return made.substr(fixed.size(), made.find(".shared .align 4") - fixed.size()) + fixed +
           made.substr(made.find(".shared .align 4"));
  };
  const RunResult good = run_body(text("64"), {0}, 64, 64);
  INFO(describe(good.report));
  CHECK(good.report.findings.empty());
  CHECK(good.out == std::vector<std::uint32_t>(64, 63));
  // An arrival too many is wanted: nobody ever goes on.
  CHECK(run_body(text("65"), {0}, 64, 64).has(FindingKind::kDeadlock));
  // Too few: the others' words are not there yet.
  CHECK(!run_body(text("32"), {0}, 64, 64).report.findings.empty());
  CHECK(run_body(".shared .align 8 .b64 bar;\nmov.u32 %r1, bar;\nmbarrier.arrive.shared.b64 %rd1, [%r1];", {0}, 0, 32)
            .has(FindingKind::kUnwrittenRead));
}
