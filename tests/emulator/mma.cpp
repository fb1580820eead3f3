// mma.sync against a product worked out element by element, for every shape and type, on random operands. The test
// keeps its own table of where the ISA puts each element.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <random>

#include "emulator/harness.h"
#include "ir/error.h"
#include "runtime/emulator/numerics.h"

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

// Every lane loads its registers, multiplies with sums that all begin with `start` and stores its elements.
std::string kernel_of(const Case& c, const std::string& start) {
  const int width = bits_in(c.a), per = width == 64 ? 1 : 32 / width, words = width == 64 ? 2 : 1;
  const int a_registers = c.m * c.k / 32 / per, b_registers = 8 * c.k / 32 / per;
  const int d_registers = c.d == "f16" ? c.m / 8 : c.m / 4;
  const char* type = width == 64 ? "b64" : "b32";
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
    body += fmt::format("mov.{} %c{}, {};\n", type, i, start);
    d_list += (i == 0 ? "%c" : ", %c") + std::to_string(i);
  }
  body += fmt::format("mma.sync.aligned.m{}n8k{}.row.col.{}.{}.{}.{}{} {{{}}}, {{{}}}, {{{}}}, {{{}}};\n", c.m, c.k,
                      c.d, c.a, c.b, c.d, c.suffix, d_list, a_list, b_list, d_list);
  body += fmt::format("mul.wide.u32 %rd2, %t, {};\nadd.u64 %rd2, %rd2, %rout;\n", d_registers * 4 * words);
  for (int i = 0; i < d_registers; ++i) body += fmt::format("st.global.{} [%rd2+{}], %c{};\n", type, i * 4 * words, i);
  return body;
}

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
  const bool wide = width == 64, half = c.d == "f16", integer = c.d == "s32";
  const int d_registers = half ? sums / 2 : sums;
  const std::string body = kernel_of(c, integer ? "1"
                                        : wide  ? "0d3ff0000000000000"
                                        : half  ? "0x3c003c00"
                                                : "0x3f800000");
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

// A float of at most 32 bits by its definition.
double value_of(const std::string& type, std::uint32_t bits) {
  if (type == "bf16") return double(float_of(bits << 16));
  if (type == "tf32") return double(float_of(bits & 0xffffe000u));
  const int mantissa = type == "f16" ? 10 : type == "e4m3" ? 3 : 2, bias = type == "e4m3" ? 7 : 15;
  const int width = type == "f16" ? 16 : 8;
  const auto digits = int(bits & ((1u << mantissa) - 1)), top = int(bits >> mantissa & (type == "e4m3" ? 15 : 31));
  const double sign = bits >> (width - 1) != 0 ? -1 : 1;
  if (type == "e4m3" ? top == 15 && digits == 7 : top == 31 && digits != 0) return NAN;
  if (type != "e4m3" && top == 31) return sign * INFINITY;
  return sign * (top == 0 ? std::ldexp(digits, 1 - bias - mantissa)
                          : std::ldexp(digits + (1 << mantissa), top - bias - mantissa));
}

// Operands of any bits: infinities, NaNs and subnormals among them. The products are added along k one by one, each
// rounded to float32 before, to the last bit.
void check_every_bit(const Case& c, std::uint32_t seed) {
  CAPTURE(fmt::format("m{}n8k{} {} {} {} seed {}", c.m, c.k, c.d, c.a, c.b, seed));
  const int width = bits_in(c.a), per = 32 / width;
  const int a_registers = c.m * c.k / 32 / per, b_registers = 8 * c.k / 32 / per;
  std::mt19937 random(seed);
  std::vector<std::uint32_t> in(static_cast<std::size_t>(32 * (a_registers + b_registers)));
  for (std::uint32_t& word : in) {
    word = random();
    // Mostly moderate numbers: the second bit of each is off, or on where it is the exponent's highest and that would
    // leave nothing but small ones. A sum that is NaN tells little.
    const std::uint32_t tops = width == 8 ? 0x40404040u : width == 16 ? 0x40004000u : 0x40000000u;
    if (random() % 16 != 0)
      word = c.a == "bf16" || c.a == "tf32" ? (word & ~tops) | (tops >> 1 | tops >> 2) : word & ~tops;
  }
  const auto element = [&](int reg, int lane, int i) {
    const std::uint32_t word = in[static_cast<std::size_t>(reg * 32 + lane)] >> (i * width % 32);
    return static_cast<float>(value_of(c.a, width == 32 ? word : word & ((1u << width) - 1)));
  };
  const bool half = c.d == "f16";
  int numbers = 0;
  const RunResult result = run_body(kernel_of(c, half ? "0x3c00b400" : "0x3fc00000"), in,
                                    static_cast<std::size_t>(32 * (half ? c.m / 8 : c.m / 4)));
  INFO(describe(result.report));
  REQUIRE(result.report.findings.empty());
  for (int row = 0; row < c.m; ++row) {
    for (int column = 0; column < 8; ++column) {
      float sum = half ? (column % 2 != 0 ? 1.0f : -0.25f) : 1.5f;
      for (int p = 0; p < c.k; ++p) {
        const int t = p % (4 * per) / per, i = p % per, group = p / (4 * per);
        const float x = element(2 * group + row / 8, row % 8 * 4 + t, i);
        const float y = element(a_registers + group, column * 4 + t, i);
        const float product = x * y;
        sum += product;
      }
      if (sum == sum) ++numbers;
      const int lane = row % 8 * 4 + column / 2, slot = row / 8 * 2 + column % 2;
      const std::uint32_t found =
          result.out[static_cast<std::size_t>(lane * (half ? c.m / 8 : c.m / 4) + (half ? slot / 2 : slot))];
      if (half) {
        const std::uint32_t wanted = sum == sum ? float_to_half(sum) : 0x7fffu;
        REQUIRE((found >> (16 * (column % 2)) & 0xffff) == wanted);
      } else {
        REQUIRE(found == (sum == sum ? bits_of(sum) : 0x7fffffffu));
      }
    }
  }
  CHECK(numbers > c.m);
}

}  // namespace

TEST_CASE("mma.sync adds its products in one order, to the last bit") {
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    for (const char* type : {"f16", "bf16"}) {
      check_every_bit({16, 8, "f32", type, type}, seed);
      check_every_bit({16, 16, "f32", type, type}, seed);
    }
    check_every_bit({16, 16, "f16", "f16", "f16"}, seed);
    check_every_bit({16, 4, "f32", "tf32", "tf32"}, seed);
    check_every_bit({16, 8, "f32", "tf32", "tf32"}, seed);
    for (const char* type : {"e4m3", "e5m2"}) check_every_bit({16, 32, "f32", type, type}, seed);
  }
}

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
