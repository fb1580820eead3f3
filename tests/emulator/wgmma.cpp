// wgmma.mma_async in hand-written PTX, for every type, layout and swizzle, against the product worked out element by
// element. The test keeps its own reading of the ISA's canonical layouts.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "emulator/harness.h"
#include "runtime/emulator/numerics.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

// How a matrix lies in shared memory: lines along K, or along M or N (16-bit types only).
struct Layout {
  int swizzle = 0;  // bytes
  bool turned = false;
};

struct Case {
  std::string d, a, b;
  int n = 16;
  Layout a_layout{}, b_layout{};
  bool a_in_registers = false;
  bool adds = true;  // scale-d
  int a_scale = 1, b_scale = 1;
  std::int64_t start = 1;  // of the sums
  bool saturates = false;
};

int bytes_of(const std::string& type) {
  return type == "tf32" ? 4 : type == "f16" || type == "bf16" ? 2 : 1;
}

// -2 to 2; unsigned: 0 to 4.
std::uint32_t encode(const std::string& type, int value) {
  if (type == "tf32") return bits_of(float(value));
  if (type == "bf16") return bits_of(float(value)) >> 16;
  if (type == "f16") return float_to_half(float(value));
  if (type == "s8" || type == "u8") return static_cast<std::uint8_t>(value);
  const std::uint32_t magnitude = value == 0 ? 0 : (value == 1 || value == -1) ? (type == "e4m3" ? 0x38 : 0x3c) : 0x40;
  return magnitude | (value < 0 ? 0x80 : 0);
}

struct Strides {
  int leading, stride;
};

Strides strides_of(const Layout& layout) {
  if (layout.turned) return layout.swizzle == 0 ? Strides{128, 256} : Strides{16 * layout.swizzle, 8 * layout.swizzle};
  // 32 bytes along K: two core matrices, or part of one swizzled line.
  return layout.swizzle == 0 ? Strides{128, 256} : Strides{16, 8 * layout.swizzle};
}

// The byte at which element (row, k) begins, row along M or N.
int place(const Layout& layout, int row, int k, int size) {
  const Strides by = strides_of(layout);
  int at;
  if (layout.turned && layout.swizzle == 0) {
    at = row % 8 * 2 + row / 8 * by.stride + k % 8 * 16 + k / 8 * by.leading;
  } else if (layout.turned) {
    const int line = layout.swizzle / 2;  // elements
    at = row % line * 2 + row / line * by.leading + k % 8 * layout.swizzle + k / 8 * by.stride;
  } else if (layout.swizzle == 0) {
    at = row % 8 * 16 + row / 8 * by.stride + k * size / 16 * by.leading + k * size % 16;
  } else {
    at = row % 8 * layout.swizzle + row / 8 * by.stride + k * size;
  }
  if (layout.swizzle == 0) return at;
  return at ^ ((at >> 7 & (layout.swizzle / 16 - 1)) << 4);
}

std::uint64_t descriptor_fields(const Layout& layout) {
  const Strides by = strides_of(layout);
  const std::uint64_t kind = layout.swizzle == 0 ? 0 : layout.swizzle == 128 ? 1 : layout.swizzle == 64 ? 2 : 3;
  return kind << 62 | static_cast<std::uint64_t>(by.stride >> 4) << 32 |
         static_cast<std::uint64_t>(by.leading >> 4) << 16;
}

void check(const Case& c) {
  CAPTURE(fmt::format("n{} {} {} {} swizzle {} {} turned {} {} registers {}", c.n, c.d, c.a, c.b, c.a_layout.swizzle,
                      c.b_layout.swizzle, c.a_layout.turned, c.b_layout.turned, c.a_in_registers));
  constexpr int kPart = 16384;  // bytes for each of A and B
  const int size = bytes_of(c.a), k = 32 / size, sums = c.n / 2;
  const bool half = c.d == "f16", integer = c.d == "s32";
  std::vector<std::uint32_t> in(2 * kPart / 4 + 128 * 4);
  auto* bytes = reinterpret_cast<std::byte*>(in.data());
  std::mt19937 random(3);
  std::vector<int> a(static_cast<std::size_t>(64 * k)), b(static_cast<std::size_t>(c.n * k));
  const auto fill = [&](std::vector<int>& values, const std::string& type, const Layout& layout, int begin) {
    for (int i = 0; i < static_cast<int>(values.size()); ++i) {
      const int value = static_cast<int>(random() % 5) - (type == "u8" ? 0 : 2);
      values[static_cast<std::size_t>(i)] = value;
      const std::uint32_t raw = encode(type, value);
      std::memcpy(bytes + begin + place(layout, i / k, i % k, size), &raw, static_cast<std::size_t>(size));
    }
  };
  fill(a, c.a, c.a_layout, 0);
  fill(b, c.b, c.b_layout, kPart);
  // A's fragment in registers, as mma.sync has it, warp by warp.
  for (int thread = 0; thread < 128; ++thread) {
    for (int i = 0; i < 16 / size; ++i) {
      const int per = 4 / size, reg = i / per, lane = thread % 32;
      const int row = thread / 32 * 16 + lane / 4 + 8 * (reg % 2),
                column = lane % 4 * per + i % per + reg / 2 * 4 * per;
      const std::uint32_t raw = encode(c.a, a[static_cast<std::size_t>(row * k + column)]);
      std::memcpy(bytes + 2 * kPart + thread * 16 + i * size, &raw, static_cast<std::size_t>(size));
    }
  }
  const int registers = half ? sums / 2 : sums;
  std::string list, a_operand = "%rd6";
  for (int i = 0; i < registers; ++i) list += fmt::format("{}%c{}", i == 0 ? "" : ", ", i);
  std::string body = fmt::format(
      ".shared .align 1024 .b8 s[{0}];\n.reg .b32 %c<128>;\n.reg .b32 %w<4>;\nmov.u32 %r1, s;\nshl.b32 %r2, %t, 2;\n"
      "cvt.u64.u32 %rd1, %r2;\nadd.u64 %rd1, %rd1, %rin;\nadd.u32 %r2, %r2, %r1;\nmov.u32 %r3, 0;\n"
      "L:\nld.global.u32 %r4, [%rd1];\nst.shared.u32 [%r2], %r4;\nadd.u64 %rd1, %rd1, 512;\nadd.u32 %r2, %r2, 512;\n"
      "add.u32 %r3, %r3, 512;\nsetp.lt.u32 %p1, %r3, {0};\n@%p1 bra L;\nfence.proxy.async;\nbar.sync 0;\n"
      "shr.u32 %r5, %r1, 4;\ncvt.u64.u32 %rd6, %r5;\nadd.u64 %rd7, %rd6, {1};\nor.b64 %rd6, %rd6, {2:#x};\n"
      "or.b64 %rd7, %rd7, {3:#x};\nmul.wide.u32 %rd8, %t, 16;\nadd.u64 %rd8, %rd8, %rin;\n"
      "ld.global.v4.u32 {{%w0, %w1, %w2, %w3}}, [%rd8+{0}];\nsetp.eq.u32 %p2, 0, {4};\n",
      2 * kPart, kPart / 16, descriptor_fields(c.a_layout), descriptor_fields(c.b_layout), c.adds ? 0 : 1);
  for (int i = 0; i < registers; ++i)
    body += fmt::format("mov.b32 %c{}, {};\n", i,
                        integer ? std::to_string(c.start)
                        : half  ? "0x3c003c00"
                                : "0f3F800000");
  if (c.a_in_registers) a_operand = "{%w0, %w1, %w2, %w3}";
  std::string scales;
  if (!integer) scales = fmt::format(", {}, {}", c.a_scale, c.b_scale);
  if (size == 2 && !c.a_in_registers) scales += fmt::format(", {}", c.a_layout.turned ? 1 : 0);
  if (size == 2) scales += fmt::format(", {}", c.b_layout.turned ? 1 : 0);
  body += fmt::format(
      "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n{}k{}{}.{}.{}.{} {{{}}}, {}, %rd7, %p2{};\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nmul.wide.u32 %rd9, %t, {};\n"
      "add.u64 %rd9, %rd9, %rout;\n",
      c.n, k, c.saturates ? ".satfinite" : "", c.d, c.a, c.b, list, a_operand, scales, registers * 4);
  for (int i = 0; i < registers; ++i) body += fmt::format("st.global.b32 [%rd9+{}], %c{};\n", 4 * i, i);
  const RunResult result = run_body(body, in, static_cast<std::size_t>(128 * registers), 128);
  INFO(describe(result.report));
  REQUIRE(result.report.findings.empty());
  CHECK(result.report.counters.tensor_multiply_adds == static_cast<std::uint64_t>(64 * c.n * k));
  for (int thread = 0; thread < 128; ++thread) {
    for (int i = 0; i < sums; ++i) {
      const int lane = thread % 32, row = thread / 32 * 16 + lane / 4 + 8 * (i / 2 % 2);
      const int column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
      std::int64_t wanted = c.adds ? c.start : 0;
      for (int p = 0; p < k; ++p)
        wanted += c.a_scale * c.b_scale * a[static_cast<std::size_t>(row * k + p)] *
                  b[static_cast<std::size_t>(column * k + p)];
      const std::uint32_t raw = result.out[static_cast<std::size_t>(thread * registers + (half ? i / 2 : i))];
      const double found = integer ? static_cast<std::int32_t>(raw)
                           : half
                               ? static_cast<double>(half_to_float(static_cast<std::uint16_t>(raw >> (16 * (i % 2)))))
                               : static_cast<double>(float_of(raw));
      if (c.saturates) wanted = std::clamp<std::int64_t>(wanted, INT32_MIN, INT32_MAX);
      if (integer) wanted = static_cast<std::int32_t>(wanted);
      REQUIRE(found == static_cast<double>(wanted));
    }
  }
}

}  // namespace

TEST_CASE("wgmma multiplies every type") {
  for (int n : {8, 24, 256}) {
    check({.d = "f32", .a = "f16", .b = "f16", .n = n});
    check({.d = "f16", .a = "f16", .b = "f16", .n = n});
    check({.d = "f32", .a = "bf16", .b = "bf16", .n = n});
    check({.d = "f32", .a = "tf32", .b = "tf32", .n = n});
    check({.d = "f32", .a = "e4m3", .b = "e5m2", .n = n});
    check({.d = "s32", .a = "s8", .b = "u8", .n = n});
  }
  check({.d = "f32", .a = "e5m2", .b = "e4m3"});
  check({.d = "s32", .a = "u8", .b = "s8"});
}

TEST_CASE("wgmma with operands in every swizzle, turned, in registers") {
  for (int swizzle : {0, 32, 64, 128}) {
    check({.d = "f32", .a = "f16", .b = "f16", .n = 64, .a_layout = {swizzle}, .b_layout = {swizzle}});
    check({.d = "s32", .a = "s8", .b = "s8", .n = 32, .a_layout = {swizzle}, .b_layout = {64}});
    check({.d = "f32", .a = "tf32", .b = "tf32", .n = 8, .b_layout = {swizzle}, .a_in_registers = true});
    check({.d = "f16", .a = "f16", .b = "f16", .n = 40, .b_layout = {swizzle}, .a_in_registers = true});
  }
  for (int swizzle : {0, 32, 64, 128}) {
    check({.d = "f32", .a = "bf16", .b = "bf16", .n = 64, .a_layout = {swizzle, true}, .b_layout = {swizzle, true}});
    check({.d = "f32", .a = "f16", .b = "f16", .n = 128, .b_layout = {swizzle, true}, .a_in_registers = true});
    check({.d = "f16", .a = "f16", .b = "f16", .n = 64, .a_layout = {swizzle, true}});
  }
}

// Operands of any bits: the products are added in one order, that of mma.sync, which has a test to the last bit.
TEST_CASE("wgmma and mma.sync agree to the last bit") {
  std::mt19937 random(11);
  for (const auto& [type, k] : {std::pair{"f16", 16}, {"bf16", 16}, {"tf32", 8}, {"e4m3", 32}, {"e5m2", 32}}) {
    CAPTURE(type);
    std::vector<std::uint32_t> in(512 + 64);
    for (std::uint32_t& word : in) {
      word = random();
      if (random() % 16 != 0) word = (word & ~0x40404040u) | (type[0] == 'f' || type[0] == 'e' ? 0 : 0x30003000u);
    }
    const std::string turns = std::string(type).ends_with("f16") ? ", 0" : "", suffix = fmt::format("{0}.{0}", type);
    const std::string body = fmt::format(
        ".shared .align 1024 .b8 s[256];\n.reg .b32 %c<8>;\n.reg .b32 %w<4>;\n.reg .b32 %b<2>;\nmov.u32 %r1, s;\n"
        "mul.wide.u32 %rd1, %t, 16;\nadd.u64 %rd1, %rd1, %rin;\nld.global.v4.u32 {{%w0, %w1, %w2, %w3}}, [%rd1];\n"
        "setp.lt.u32 %p1, %t, 64;\nshl.b32 %r2, %t, 2;\ncvt.u64.u32 %rd2, %r2;\nadd.u64 %rd2, %rd2, %rin;\n"
        "add.u32 %r2, %r2, %r1;\n@%p1 ld.global.u32 %r3, [%rd2+2048];\n@%p1 st.shared.u32 [%r2], %r3;\n"
        "fence.proxy.async;\nbar.sync 0;\nand.b32 %r4, %t, 31;\nshl.b32 %r4, %r4, 2;\nadd.u32 %r4, %r4, %r1;\n"
        "ld.shared.u32 %b0, [%r4];\nld.shared.u32 %b1, [%r4+128];\nshr.u32 %r5, %r1, 4;\ncvt.u64.u32 %rd6, %r5;\n"
        "or.b64 %rd6, %rd6, 0x800080000;\nsetp.eq.u32 %p2, 0, 0;\n"
        "mov.b32 %c0, 0f3F800000;\nmov.b32 %c1, 0f3F800000;\nmov.b32 %c2, 0f3F800000;\nmov.b32 %c3, 0f3F800000;\n"
        "mov.b32 %c4, 0f3F800000;\nmov.b32 %c5, 0f3F800000;\nmov.b32 %c6, 0f3F800000;\nmov.b32 %c7, 0f3F800000;\n"
        "mma.sync.aligned.m16n8k{0}.row.col.f32.{1}.f32 {{%c4, %c5, %c6, %c7}}, {{%w0, %w1, %w2, %w3}}, {{%b0, %b1}}, "
        "{{%c4, %c5, %c6, %c7}};\nwgmma.fence.sync.aligned;\n"
        "wgmma.mma_async.sync.aligned.m64n8k{0}.f32.{1} {{%c0, %c1, %c2, %c3}}, {{%w0, %w1, %w2, %w3}}, %rd6, %p2, 1, "
        "1{2};\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nmul.wide.u32 %rd3, %t, 32;\n"
        "add.u64 %rd3, %rd3, %rout;\nst.global.v4.b32 [%rd3], {{%c0, %c1, %c2, %c3}};\n"
        "st.global.v4.b32 [%rd3+16], {{%c4, %c5, %c6, %c7}};\n",
        k, suffix, turns);
    const RunResult result = run_body(body, in, 1024, 128);
    INFO(describe(result.report));
    REQUIRE(result.report.findings.empty());
    std::size_t numbers = 0;
    for (std::size_t i = 0; i < result.out.size(); ++i) {
      if (i % 8 < 4) REQUIRE(result.out[i] == result.out[i + 4]);
      if (float_of(result.out[i]) == float_of(result.out[i])) ++numbers;
    }
    CHECK(numbers > result.out.size() / 4);
  }
}

TEST_CASE("wgmma's scales") {
  check({.d = "f32", .a = "f16", .b = "f16", .adds = false});
  check({.d = "s32", .a = "s8", .b = "s8", .adds = false});
  check({.d = "f32", .a = "f16", .b = "f16", .a_scale = -1});
  check({.d = "f32", .a = "tf32", .b = "tf32", .b_scale = -1});
  check({.d = "f16", .a = "f16", .b = "f16", .a_scale = -1, .b_scale = -1});
}

TEST_CASE("wgmma's integer sums wrap, or saturate") {
  for (const std::int64_t start : {std::int64_t{INT32_MAX - 3}, std::int64_t{INT32_MIN + 3}}) {
    check({.d = "s32", .a = "s8", .b = "s8", .start = start});
    check({.d = "s32", .a = "s8", .b = "s8", .start = start, .saturates = true});
    check({.d = "s32", .a = "s8", .b = "u8", .a_in_registers = true, .start = start, .saturates = true});
  }
}

TEST_CASE("wgmma reads what threads stored behind a proxy fence only") {
  const auto body = [](const std::string& between) {
    return ".shared .align 1024 .b8 s[4096];\n.reg .b32 %c<8>;\nmov.u32 %r1, s;\nshl.b32 %r2, %t, 5;\n"
           "add.u32 %r2, %r2, %r1;\nst.shared.v4.u32 [%r2], {0, 0, 0, 0};\nst.shared.v4.u32 [%r2+16], {0, 0, 0, 0};\n" +
           between +
           "shr.u32 %r5, %r1, 4;\ncvt.u64.u32 %rd6, %r5;\nor.b64 %rd6, %rd6, 0x1000080000;\nsetp.eq.u32 %p2, 0, 1;\n"
           "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%c0, %c1, %c2, %c3}, %rd6, "
           "%rd6, %p2, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  };
  const auto findings = [&](const std::string& between) { return run_body(body(between), {0}, 1, 128).report; };
  const Report good = findings("fence.proxy.async.shared::cta;\nbar.sync 0;\n");
  INFO(describe(good));
  CHECK(good.findings.empty());
  const Report unfenced = findings("bar.sync 0;\n"), racing = findings("fence.proxy.async.shared::cta;\n");
  REQUIRE(unfenced.findings.size() == 1);
  CHECK(unfenced.findings[0].kind == FindingKind::kProxyFence);
  REQUIRE(!racing.findings.empty());
  CHECK(racing.findings[0].kind == FindingKind::kSharedRace);
}

namespace {

// Zeros in 4 KiB of shared memory, seen by wgmma; %rd6 describes its beginning. Sums in %c0 to %c7, A in %w0 to %w3.
const std::string kZeros =
    ".shared .align 1024 .b8 s[8192];\n.shared .align 8 .b64 full;\n.reg .b32 %c<8>;\n.reg .b32 %w<4>;\nmov.u32 %r1, "
    "s;\n"
    "mov.u32 %r9, full;\nsetp.eq.u32 %p1, %t, 0;\nshl.b32 %r2, %t, 5;\n"
    "add.u32 %r2, %r2, %r1;\nst.shared.v4.u32 [%r2], {0, 0, 0, 0};\nst.shared.v4.u32 [%r2+16], {0, 0, 0, 0};\n"
    "@%p1 mbarrier.init.shared::cta.b64 [%r9], 1;\nfence.proxy.async;\nbar.sync 0;\n"
    "shr.u32 %r5, %r1, 4;\ncvt.u64.u32 %rd6, %r5;\nor.b64 %rd6, %rd6, 0x1000080000;\nsetp.eq.u32 %p2, 0, 0;\n"
    "mov.b32 %c0, 0;\nmov.b32 %c1, 0;\nmov.b32 %c2, 0;\nmov.b32 %c3, 0;\nmov.b32 %w0, 0;\nmov.b32 %w1, 0;\n"
    "mov.b32 %w2, 0;\nmov.b32 %w3, 0;\n";
const std::string kFence = "wgmma.fence.sync.aligned;\n", kCommit = "wgmma.commit_group.sync.aligned;\n",
                  kProduct =
                      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%c0, %c1, %c2, %c3}, %rd6, %rd6, %p2, "
                      "1, 1, 0, 0;\n",
                  kFromRegisters =
                      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%c0, %c1, %c2, %c3}, {%w0, %w1, "
                      "%w2, %w3}, %rd6, %p2, 1, 1, 0;\n",
                  kOther =
                      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%c4, %c5, %c6, %c7}, %rd6, %rd6, %p2, 1, 1, "
                      "0, 0;\n";

std::string wait(int newest) {
  return fmt::format("wgmma.wait_group.sync.aligned {};\n", newest);
}

Report products(const std::string& body) {
  return run_body(kZeros + body, std::vector<std::uint32_t>(512), 512, 128).report;
}

void clean(const Report& report) {
  INFO(describe(report));
  CHECK(report.findings.empty());
}

void finds(const Report& report, const std::string& text) {
  INFO(describe(report));
  REQUIRE(!report.findings.empty());
  CHECK(report.findings[0].kind == FindingKind::kAsyncRead);
  CHECK(describe(report).find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("what a wgmma reads is written again behind its wait only") {
  const std::string start = kFence + kProduct + kCommit, store = "st.shared.u32 [%r2], 0;\n", barrier = "bar.sync 0;\n";
  clean(products(start + wait(0) + barrier + store));
  finds(products(start + barrier + store + wait(0)), "still reads");
  finds(products(start + wait(1) + barrier + store + wait(0)), "still reads");
  // The older of two groups is complete, but both read the same bytes.
  finds(products(start + kFence + kProduct + kCommit + wait(1) + barrier + store + wait(0)), "still reads");
  finds(products(kFence + kProduct + barrier + store + kCommit + wait(0)), "still reads");
  // Bytes that the product does not read.
  clean(products(start + "shl.b32 %r4, %t, 2;\nadd.u32 %r4, %r4, %r1;\nst.shared.u32 [%r4+4608], 0;\n" + wait(0)));
  // Behind the wait of the own warp, and late enough for the others', but with nothing that orders it behind those.
  const Report race =
      products(start + barrier + wait(0) +
               "mov.u32 %r8, 5;\nN: nanosleep.u32 20;\nsub.u32 %r8, %r8, 1;\nsetp.ne.u32 %p3, %r8, 0;\n@%p3 bra N;\n"
               "add.u32 %r8, %t, 1;\n@%p1 st.shared.u32 [%r1], %r8;\n");
  INFO(describe(race));
  REQUIRE(race.findings.size() == 1);
  CHECK(race.findings[0].kind == FindingKind::kSharedRace);
  const std::string load =
      "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9], 512;\n"
      "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rin], 512, [%r9];\n"
      "W: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r9], 0;\n@!%p4 bra W;\n";
  clean(products(start + wait(0) + barrier + load));
  finds(products(start + barrier + load + wait(0)), "still reads");
}

TEST_CASE("the registers of a wgmma are touched behind its wait only") {
  const std::string start = kFence + kProduct + kCommit, read = "add.f32 %f1, %c0, %c1;\n",
                    write = "add.u32 %c3, %t, 1;\n",
                    copy = "mov.b32 %c4, %c0;\nmov.b32 %c5, %c1;\nmov.b32 %c6, %c2;\nmov.b32 %c7, %c3;\n",
                    zeros = "mov.b32 %c4, 0;\nmov.b32 %c5, 0;\nmov.b32 %c6, 0;\nmov.b32 %c7, 0;\n";
  clean(products(start + wait(0) + read + write));
  finds(products(start + read + wait(0)), "reads sums");
  finds(products(start + write + wait(0)), "writes over sums");
  finds(products(start + wait(1) + read + wait(0)), "reads sums");
  finds(products(kFence + kProduct + wait(0) + read), "reads sums");  // not committed
  finds(products(start + "shfl.sync.bfly.b32 %r8, %c0, 1, 31, -1;\n" + wait(0)), "reads sums");
  // The group before the newest one is complete.
  clean(products(zeros + start + kOther + kCommit + wait(1) + read + wait(0)));
  // Sums go from product to product, under other names as well, and wait with their copies.
  clean(products(start + kProduct + kCommit + copy + kOther + kCommit + wait(0) + read));
  finds(products(start + copy + "add.f32 %f1, %c4, %c5;\n" + wait(0)), "reads sums");
  // As Triton does with sums of f16.
  const std::string take_apart = ".reg .b16 %part<2>;\nmov.b32 {%part0, %part1}, %c0;\n",
                    use = "add.u16 %part0, %part0, 1;\n";
  clean(products(start + take_apart + wait(0) + use));
  finds(products(start + take_apart + use + wait(0)), "reads sums");
  // Constants are no copies.
  finds(products(start + "mov.b32 %c3, 0;\n" + wait(0)), "writes over sums");
}

TEST_CASE("A in registers is written behind a wgmma's wait and before a fence") {
  const std::string start = kFence + kFromRegisters + kCommit, again = kFromRegisters + kCommit + wait(0),
                    write = "add.u32 %w1, %t, 1;\n", parts = ".reg .b16 %part<2>;\ncvt.u16.u32 %part0, %t;\n",
                    pack = "mov.b32 %w1, {%part0, %part0};\n";
  clean(products(start + wait(0) + write));
  finds(products(start + write + wait(0)), "writes over A");
  finds(products(start + "mov.b32 %w1, 0;\n" + wait(0)), "writes over A");
  finds(products(start + "shfl.sync.bfly.b32 %w2, %r8, 1, 31, -1;\n" + wait(0)), "writes over A");
  clean(products(parts + start + wait(0) + pack));
  finds(products(parts + start + pack + wait(0)), "writes over A");
  // Before the first product as well as between two.
  const std::string late = "multiplies A that other instructions have written, without wgmma.fence between";
  clean(products(write + start + wait(0)));
  finds(products(kFence + write + again), late);
  finds(products(kFence + "ld.shared.u32 %w3, [%r1];\n" + again), late);
  finds(products(kFence + "@%p1 add.u32 %w0, %w0, 1;\n" + again), late);
  clean(products(kFence + write + kFence + again));
  clean(products(start + wait(0) + write + kFence + again));
  finds(products(start + wait(0) + write + again), late);
  clean(products(kFence + "add.u32 %r8, %r8, 1;\n" + again));
  // Packed or renamed behind the fence: as old as what it is made of.
  clean(products(parts + kFence + pack + again));
  finds(products(kFence + parts + pack + again), late);
  clean(products(write + kFence + "mov.b32 %r8, %w1;\nmov.b32 %w1, %r8;\n" + again));
  finds(products(kFence + write + "mov.b32 %r8, %w1;\nmov.b32 %w2, %r8;\n" + again), late);
  // The sums of another product, waited for, are A of the next one.
  const std::string from_sums = "cvt.rn.f16x2.f32 %w0, %c4, %c5;\n",
                    zeros = "mov.b32 %c4, 0;\nmov.b32 %c5, 0;\nmov.b32 %c6, 0;\nmov.b32 %c7, 0;\n";
  clean(products(zeros + kFence + kOther + kCommit + wait(0) + from_sums + kFence + again));
  finds(products(zeros + kFence + kOther + kCommit + wait(0) + from_sums + again), late);
}

TEST_CASE("wgmma.fence before the first product and behind other writes of its sums") {
  clean(products(kFence + kProduct + kProduct + kCommit + wait(0)));
  finds(products(kProduct + kCommit + wait(0)), "before any wgmma.fence");
  const std::string first = kFence + kProduct + kCommit + wait(0) + "mov.b32 %c1, 0f3F800000;\n";
  finds(products(first + kProduct + kCommit + wait(0)), "without wgmma.fence between");
  clean(products(first + kFence + kProduct + kCommit + wait(0)));
}
