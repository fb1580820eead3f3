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
