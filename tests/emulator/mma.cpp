// mma.sync against a product worked out element by element, for every shape and type, on random operands. The test
// keeps its own table of where the ISA puts each element.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <random>

#include "emulator/harness.h"
#include "ir/error.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

struct Element {
  double value;
  std::uint64_t bits;
};

// Small values that every type holds exactly.
Element random_element(const std::string& type, std::mt19937& random) {
  const int wide = static_cast<int>(random() % 15) - 7;
  if (type == "b1") return {double(wide & 1), static_cast<std::uint64_t>(wide & 1)};
  if (type == "s8") return {double(wide * 9), static_cast<std::uint8_t>(wide * 9)};
  if (type == "u8") return {double((wide + 7) * 9), static_cast<std::uint8_t>((wide + 7) * 9)};
  if (type == "s4") return {double(wide), static_cast<std::uint8_t>(wide & 15)};
  if (type == "u4") return {double(wide + 7), static_cast<std::uint8_t>(wide + 7)};
  if (type == "f64") return {wide * 0.25, bits_of(wide * 0.25)};
  if (type == "tf32") return {wide * 0.25, bits_of(float(wide * 0.25))};
  const float value = float(wide) * 0.25f;
  const std::uint32_t single = bits_of(value);
  if (type == "bf16") return {value, single >> 16};
  // f16, e4m3 and e5m2 by their definitions: k/4 for |k| < 8 is normal in all three.
  const int mantissa = type == "f16" ? 10 : type == "e4m3" ? 3 : 2, bias = type == "e4m3" ? 7 : 15;
  const int kept = type == "e5m2" ? std::clamp(wide, -4, 4) : wide;
  if (kept == 0) return {0, 0};
  const int exponent = std::ilogb(std::abs(kept) * 0.25);
  const int digits = static_cast<int>(std::ldexp(std::abs(kept) * 0.25, mantissa - exponent)) - (1 << mantissa);
  const int sign = kept < 0 ? 1 << (type == "f16" ? 15 : 7) : 0;
  return {kept * 0.25, static_cast<std::uint64_t>(sign | ((exponent + bias) << mantissa) | digits)};
}

int bits_in(const std::string& type) {
  if (type == "f64") return 64;
  if (type == "tf32" || type == "f32" || type == "s32") return 32;
  if (type == "f16" || type == "bf16") return 16;
  if (type == "b1") return 1;
  return type == "s4" || type == "u4" ? 4 : 8;
}

struct Case {
  int m, k;
  std::string d, a, b;
  std::string suffix = {};  // .xor.popc
};

void check(const Case& c) {
  CAPTURE(fmt::format("m{}n8k{} {} {} {}", c.m, c.k, c.d, c.a, c.b));
  std::mt19937 random(7);
  const int width = bits_in(c.a), per = width == 64 ? 1 : 32 / width, words = width == 64 ? 2 : 1;
  const int a_registers = c.m * c.k / 32 / per, b_registers = 8 * c.k / 32 / per, sums = c.m / 4;
  std::vector<double> a(c.m * c.k), b(c.k * 8), product(c.m * 8);
  std::vector<std::uint32_t> in(32 * (a_registers + b_registers) * words);
  const auto put = [&](int lane, int slot, int element, std::uint64_t value) {
    const std::size_t at = static_cast<std::size_t>((slot * 32 + lane) * words);
    if (words == 2) {
      in[at] = static_cast<std::uint32_t>(value);
      in[at + 1] = static_cast<std::uint32_t>(value >> 32);
    } else {
      in[at] |= static_cast<std::uint32_t>(value) << (element * width);
    }
  };
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane / 4, thread = lane % 4;
    for (int i = 0; i < a_registers * per; ++i) {
      // PTX ISA, "matrix fragments": rows alternate by register for 16-row shapes.
      const int reg = i / per;
      const int row = group + (c.m == 16 && reg % 2 == 1 ? 8 : 0);
      const int column = thread * per + i % per + (c.m == 16 ? reg / 2 : reg) * 4 * per;
      const Element element = random_element(c.a, random);
      a[row * c.k + column] = element.value;
      put(lane, reg, i % per, element.bits);
    }
    for (int i = 0; i < b_registers * per; ++i) {
      const int row = thread * per + i % per + i / per * 4 * per;
      const Element element = random_element(c.b, random);
      b[row * 8 + group] = element.value;
      put(lane, a_registers + i / per, i % per, element.bits);
    }
  }
  for (int i = 0; i < c.m; ++i) {
    for (int j = 0; j < 8; ++j) {
      for (int p = 0; p < c.k; ++p) {
        const double x = a[i * c.k + p], y = b[p * 8 + j];
        product[i * 8 + j] += c.suffix == ".xor.popc" ? (x != y ? 1 : 0) : x * y;
      }
    }
  }
  // Every lane loads its registers, multiplies with c = 1 and stores its elements.
  const bool wide = width == 64, half = c.d == "f16", integer = c.d == "s32";
  const char* type = wide ? "b64" : "b32";
  const int d_registers = half ? sums / 2 : sums;
  std::string body = fmt::format(
      ".reg .{} %a<8>;\n.reg .{} %b<8>;\n.reg .{} %c<8>;\nmul.wide.u32 %rd1, %t, {};\nadd.u64 %rd1, %rd1, %rin;\n",
      type, type, type, 4 * words);
  std::string a_list, b_list, d_list;
  for (int i = 0; i < a_registers + b_registers; ++i) {
    const std::string name = i < a_registers ? fmt::format("%a{}", i) : fmt::format("%b{}", i - a_registers);
    body += fmt::format("ld.global.{} {}, [%rd1+{}];\n", type, name, i * 128 * words);
    std::string& list = i < a_registers ? a_list : b_list;
    list += (list.empty() ? "" : ", ") + name;
  }
  for (int i = 0; i < d_registers; ++i) {
    body += fmt::format("mov.{} %c{}, {};\n", type, i,
                        integer ? "1"
                        : wide  ? "0d3ff0000000000000"
                        : half  ? "0x3c003c00"
                                : "0x3f800000");
    d_list += (i == 0 ? "%c" : ", %c") + std::to_string(i);
  }
  body += fmt::format("mma.sync.aligned.m{}n8k{}.row.col.{}.{}.{}.{}{} {{{}}}, {{{}}}, {{{}}}, {{{}}};\n", c.m, c.k,
                      c.d, c.a, c.b, c.d, c.suffix, d_list, a_list, b_list, d_list);
  body += fmt::format("mul.wide.u32 %rd2, %t, {};\nadd.u64 %rd2, %rd2, %rout;\n", d_registers * 4 * words);
  for (int i = 0; i < d_registers; ++i) body += fmt::format("st.global.{} [%rd2+{}], %c{};\n", type, i * 4 * words, i);
  const RunResult result = run_body(body, in, static_cast<std::size_t>(32 * d_registers * words));
  INFO(describe(result.report));
  REQUIRE(result.report.findings.empty());
  CHECK(result.report.counters.tensor_multiply_adds == static_cast<std::uint64_t>(c.m * 8 * c.k));
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < sums; ++i) {
      const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
      double found;
      if (wide) {
        const std::size_t at = static_cast<std::size_t>(lane * sums + i) * 2;
        const std::uint64_t raw = result.out[at] | (static_cast<std::uint64_t>(result.out[at + 1]) << 32);
        std::memcpy(&found, &raw, 8);
      } else if (half) {
        const std::uint32_t raw =
            result.out[static_cast<std::size_t>(lane * d_registers + i / 2)] >> (16 * (i % 2)) & 0xffff;
        found =
            std::ldexp(double((raw & 0x3ff) + 1024), static_cast<int>(raw >> 10 & 31) - 25) * (raw >> 15 != 0 ? -1 : 1);
        if ((raw & 0x7fff) == 0) found = 0;
      } else {
        const std::uint32_t raw = result.out[static_cast<std::size_t>(lane * d_registers + i)];
        found = integer ? static_cast<std::int32_t>(raw) : static_cast<double>(float_of(raw));
      }
      REQUIRE(found == product[row * 8 + column] + 1);
    }
  }
}

}  // namespace

TEST_CASE("mma.sync is the product of its fragments") {
  for (int k : {8, 16}) {
    check({16, k, "f32", "f16", "f16"});
    check({16, k, "f16", "f16", "f16"});
    check({16, k, "f32", "bf16", "bf16"});
    check({16, k, "f64", "f64", "f64"});
  }
  for (int k : {4, 8}) check({16, k, "f32", "tf32", "tf32"});
  check({8, 4, "f64", "f64", "f64"});
  for (const char* a : {"s8", "u8"}) {
    for (const char* b : {"s8", "u8"}) {
      check({16, 16, "s32", a, b});
      check({16, 32, "s32", a, b});
      check({8, 16, "s32", a, b});
    }
  }
  check({16, 64, "s32", "s4", "s4"});
  check({16, 32, "s32", "u4", "s4"});
  check({8, 32, "s32", "s4", "u4"});
  for (const char* suffix : {".xor.popc", ".and.popc"}) {
    check({8, 128, "s32", "b1", "b1", suffix});
    check({16, 128, "s32", "b1", "b1", suffix});
    check({16, 256, "s32", "b1", "b1", suffix});
  }
  for (const char* a : {"e4m3", "e5m2"}) {
    for (const char* b : {"e4m3", "e5m2"}) check({16, 32, "f32", a, b});
  }
}

TEST_CASE("what mma.sync cannot do is refused by its name") {
  const auto refused = [](const std::string& instruction) {
    try {
      run_body(".reg .b32 %a<4>;\n" + instruction, {0}, 0);
    } catch (const fusec::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string operands = " {%a0, %a1, %a2, %a3}, {%a0, %a1}, {%a0, %a1}, {%a0, %a1, %a2, %a3}, %a0, 0;";
  CHECK(refused("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" + operands).find("mma.sp") != std::string::npos);
  CHECK(refused("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" + operands).find("sparse") !=
        std::string::npos);
  const std::string bits = " {%a0, %a1}, {%a0}, {%a0}, {%a0, %a1};";
  CHECK(refused("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.or.popc" + bits).find("unknown") != std::string::npos);
  CHECK(refused("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32" + bits).find("unknown") != std::string::npos);
}
