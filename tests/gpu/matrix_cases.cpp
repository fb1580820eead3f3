// mma.sync and wgmma.mma_async on random fragments. Integer products are compared bit for bit. The order in which float
// products are added up is the hardware's own, so their error is measured against the sum of |a * b| and |c|: the same
// launch on the emulator with every operand's sign taken away.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <random>

#include "gpu/scalar_model.h"
#include "gpu/test_case.h"

namespace fusec::gpu_test {
namespace {

struct Format {
  const char* name;
  int bits;
  int exponent, mantissa;  // 0, 0: an integer
  bool is_signed = true;
};

struct Shape {
  int m, n, k;
  Format a, b;
  const char* d;  // f16, f32, f64, s32
};

constexpr Format kF16{"f16", 16, 5, 10}, kBF16{"bf16", 16, 8, 7}, kTF32{"tf32", 32, 8, 23}, kF64{"f64", 64, 11, 52},
    kE4M3{"e4m3", 8, 4, 3}, kE5M2{"e5m2", 8, 5, 2}, kS8{"s8", 8, 0, 0}, kU8{"u8", 8, 0, 0, false}, kS4{"s4", 4, 0, 0},
    kU4{"u4", 4, 0, 0, false};

// Random values around 1, some far from it, some zero; integers are any bits.
std::uint64_t random_element(std::mt19937_64& random, const Format& format) {
  const std::uint64_t all = format.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << format.bits) - 1;
  if (format.exponent == 0) return random() & all;
  if (random() % 16 == 0) return 0;
  const int bias = (1 << (format.exponent - 1)) - 1, spread = format.exponent <= 4 ? 3 : 6;
  const auto exponent = static_cast<std::uint64_t>(bias + static_cast<int>(random() % (2 * spread + 1)) - spread);
  std::uint64_t mantissa = random() & ((std::uint64_t{1} << format.mantissa) - 1);
  if (format.bits == 32) mantissa &= ~std::uint64_t{0x1fff};  // tf32 has ten bits
  return (random() & 1) << (format.bits - 1) | exponent << format.mantissa | mantissa;
}

void append_random(std::vector<std::uint32_t>& words, std::mt19937_64& random, const Format& format,
                   std::size_t count) {
  std::uint64_t word = 0;
  int filled = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t element = random_element(random, format);
    if (format.bits == 64) {
      words.push_back(static_cast<std::uint32_t>(element));
      words.push_back(static_cast<std::uint32_t>(element >> 32));
      continue;
    }
    word |= element << filled;
    filled += format.bits;
    if (filled < 32) continue;
    words.push_back(static_cast<std::uint32_t>(word));
    word = 0;
    filled = 0;
  }
}

// Takes the signs of `count` words that hold elements of `bits` bits.
void take_signs(std::vector<std::uint32_t>& words, std::size_t begin, std::size_t end, int bits) {
  for (std::size_t i = begin; i < end; ++i) {
    if (bits == 64 && (i - begin) % 2 == 0) continue;
    words[i] &= bits == 8 ? 0x7f7f7f7fu : bits == 16 ? 0x7fff7fffu : 0x7fffffffu;
  }
}

Format sum_format(const char* d) {
  const std::string_view name = d;
  return name == "f16" ? kF16 : name == "f64" ? kF64 : name == "f32" ? kTF32 : Format{"s32", 32, 0, 0};
}

double read_sum(std::string_view d, const std::vector<std::uint32_t>& words, std::size_t i) {
  if (d == "f64") {
    return std::bit_cast<double>(words[2 * i] | static_cast<std::uint64_t>(words[2 * i + 1]) << 32);
  }
  if (d == "f16") return half_value(static_cast<std::uint16_t>(words[i / 2] >> (16 * (i % 2))));
  return std::bit_cast<float>(words[i]);
}

// The stated bounds, as a part of the sum of |a * b| + |c|. float32: tensor cores align the products of a step and cut
// them, which loses less than one unit of the largest in 2^-21 or so a step; float16 sums are rounded to ten bits.
double limit_of(const Shape& shape) {
  const std::string_view d = shape.d;
  if (d == "f64") return 0x1p-48;
  if (d == "f16") return 0x1p-9;
  return shape.a.bits == 8 ? 0x1p-11 : 0x1p-18;  // fp8 products are kept in 14 bits on sm_90
}

// Where the three operands lie in `in`, in words.
struct Layout {
  std::size_t a, b, c;  // begins of b and c, and the end
};

Verdict judge_sums(const Shape& shape, const Layout& layout, const TestLaunch& launch,
                   const std::vector<std::uint32_t>& device, const std::vector<std::uint32_t>& emulated,
                   Executor& emulator) {
  Verdict verdict;
  const std::string_view d = shape.d;
  const bool exact = d == "s32";
  TestLaunch sizes = launch;
  take_signs(sizes.in, 0, layout.a, shape.a.bits);
  take_signs(sizes.in, layout.a, layout.b, shape.b.bits);
  take_signs(sizes.in, layout.b, layout.c, sum_format(shape.d).bits);
  const std::vector<std::uint32_t> bounds = exact ? emulated : emulator.run(sizes);
  const std::size_t count = d == "f64" ? launch.out_words / 2 : d == "f16" ? launch.out_words * 2 : launch.out_words;
  for (std::size_t i = 0; i < count; ++i) {
    double error = 0;
    if (exact) {
      error = device[i] == emulated[i] ? 0 : 2;
    } else {
      const double distance = std::fabs(read_sum(d, device, i) - read_sum(d, emulated, i));
      error = distance / (limit_of(shape) * read_sum(d, bounds, i) + 0x1p-126);
      if (!(error == error)) error = 2;
    }
    ++verdict.results;
    verdict.worst = std::max(verdict.worst, error);
    if (error <= 1 || verdict.wrong++ != 0) continue;
    verdict.first = exact ? fmt::format("element {}: device {:#x}, emulator {:#x}", i, device[i], emulated[i])
                          : fmt::format("element {}: device {}, emulator {}, sum of sizes {}", i,
                                        read_sum(d, device, i), read_sum(d, emulated, i), read_sum(d, bounds, i));
  }
  return verdict;
}

// ---- mma.sync: 64 warps of a block each, all fragments word by word

constexpr std::uint32_t kWarps = 64;

std::string load_list(const char* letter, std::size_t count, std::size_t offset, bool wide, std::string& body) {
  std::string list;
  const char* type = wide ? "b64" : "b32";
  body += fmt::format(".reg .{} %{}<{}>;\n", type, letter, count);
  for (std::size_t i = 0; i < count; ++i) {
    body += fmt::format("ld.global.{} %{}{}, [%rd{}+{}];\n", type, letter, i, offset, i * (wide ? 8 : 4));
    list += fmt::format("{}%{}{}", i == 0 ? "" : ", ", letter, i);
  }
  return list;
}

TestCase mma_case(const Shape& shape) {
  const bool wide = std::string_view(shape.d) == "f64", half = std::string_view(shape.d) == "f16";
  const int bits = wide ? 64 : 32;
  const auto registers = [bits](int elements, int width) {
    return static_cast<std::size_t>(elements * width / 32 / bits);
  };
  const std::size_t a = registers(shape.m * shape.k, shape.a.bits), b = registers(shape.n * shape.k, shape.b.bits);
  const std::size_t c = registers(shape.m * shape.n, half ? 16 : bits);
  const std::size_t words = wide ? 2 : 1, threads = kWarps * 32;
  const Layout layout{threads * a * words, threads * (a + b) * words, threads * (a + b + c) * words};
  std::string body;
  const auto pointer = [&body](int number, std::size_t stride, std::size_t offset, const char* base) {
    body += fmt::format("mul.wide.u32 %rd{0}, %t, {1};\nadd.u64 %rd{0}, %rd{0}, {2};\nadd.u64 %rd{0}, %rd{0}, {3};\n",
                        number, stride, base, offset);
  };
  pointer(1, a * words * 4, 0, "%rin");
  pointer(2, b * words * 4, layout.a * 4, "%rin");
  pointer(3, c * words * 4, layout.b * 4, "%rin");
  pointer(4, c * words * 4, 0, "%rout");
  const std::string a_list = load_list("a", a, 1, wide, body), b_list = load_list("b", b, 2, wide, body),
                    c_list = load_list("c", c, 3, wide, body);
  TestCase made;
  made.name = fmt::format("mma.sync.aligned.m{}n{}k{}.row.col.{}.{}.{}.{}", shape.m, shape.n, shape.k, shape.d,
                          shape.a.name, shape.b.name, shape.d);
  body += fmt::format("{} {{{}}}, {{{}}}, {{{}}}, {{{}}};\n", made.name, c_list, a_list, b_list, c_list);
  for (std::size_t i = 0; i < c; ++i)
    body += fmt::format("st.global.{} [%rd4+{}], %c{};\n", wide ? "b64" : "b32", i * words * 4, i);
  const bool fp8 = shape.a.bits == 8 && shape.a.exponent != 0;
  made.capability = fp8 ? 89 : 80;
  const std::string ptx = kernel_text(body, fp8 ? "sm_89" : "sm_80");
  made.bound = std::string_view(shape.d) == "s32"
                   ? "bit for bit"
                   : fmt::format("2^{} of the sum of |a b| + |c|", std::log2(limit_of(shape)));
  made.launch = [=](std::uint32_t seed) {
    TestLaunch launch{.ptx = ptx, .blocks = kWarps, .threads = 32, .in = {}, .out_words = layout.c - layout.b};
    std::mt19937_64 random(seed);
    append_random(launch.in, random, shape.a, threads * a * static_cast<std::size_t>(bits / shape.a.bits));
    append_random(launch.in, random, shape.b, threads * b * static_cast<std::size_t>(bits / shape.b.bits));
    append_random(launch.in, random, half ? kF16 : sum_format(shape.d), threads * c * (half ? 2 : 1));
    return launch;
  };
  made.judge = [shape, layout](const TestLaunch& launch, const std::vector<std::uint32_t>& device,
                               const std::vector<std::uint32_t>& emulated, Executor& emulator) {
    return judge_sums(shape, layout, launch, device, emulated, emulator);
  };
  return made;
}

// ---- wgmma: A (64 x k) and B (n x k) in shared memory without swizzle: core matrices of 8 rows of 16 bytes, those
// along k beside each other, groups of eight rows behind them

TestCase wgmma_case(const Shape& shape) {
  const bool half = std::string_view(shape.d) == "f16";
  const std::size_t a_words = static_cast<std::size_t>(64 * shape.k * shape.a.bits / 32),
                    b_words = static_cast<std::size_t>(shape.n * shape.k * shape.b.bits / 32),
                    sums = static_cast<std::size_t>(half ? shape.n / 4 : shape.n / 2);
  const Layout layout{a_words, a_words + b_words, a_words + b_words + 128 * sums};
  std::string body = fmt::format(
      ".shared .align 128 .b8 s[{}];\nmov.u32 %r10, 0;\nmov.u32 %r11, s;\nshl.b32 %r12, %t, 2;\n"
      "add.u32 %r13, %r11, %r12;\ncvt.u64.u32 %rd1, %r12;\nadd.u64 %rd1, %rd1, %rin;\nadd.u32 %r14, %t, 0;\n"
      "COPY:\nsetp.ge.u32 %p1, %r14, {};\n@%p1 bra COPIED;\nld.global.u32 %r15, [%rd1];\nst.shared.u32 [%r13], %r15;\n"
      "add.u64 %rd1, %rd1, 512;\nadd.u32 %r13, %r13, 512;\nadd.u32 %r14, %r14, 128;\nbra COPY;\nCOPIED:\n"
      "fence.proxy.async;\nbar.sync 0;\n",
      (a_words + b_words) * 4, a_words + b_words);
  // Leading: from one core matrix to the next along k, 128 bytes; stride: from one group of rows to the next.
  const std::uint64_t stride = static_cast<std::uint64_t>(shape.k * shape.a.bits / 8 / 16) * 128;
  const std::uint64_t fields = std::uint64_t{128 >> 4} << 16 | (stride >> 4) << 32;
  body += fmt::format(
      "shr.u32 %r16, %r11, 4;\ncvt.u64.u32 %rd5, %r16;\nor.b64 %rd5, %rd5, {0:#x};\nadd.u32 %r17, %r11, {1};\n"
      "shr.u32 %r17, %r17, 4;\ncvt.u64.u32 %rd6, %r17;\nor.b64 %rd6, %rd6, {0:#x};\n"
      "mul.wide.u32 %rd3, %t, {2};\nadd.u64 %rd4, %rd3, %rout;\nadd.u64 %rd3, %rd3, %rin;\nadd.u64 %rd3, %rd3, {3};\n",
      fields, a_words * 4, sums * 4, layout.b * 4);
  const std::string list = load_list("c", sums, 3, false, body);
  TestCase made;
  made.name = fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{}", shape.n, shape.k, shape.d, shape.a.name,
                          shape.b.name);
  const bool integer = std::string_view(shape.d) == "s32";
  const char* scales = integer ? "" : shape.a.bits == 16 ? ", 1, 1, 0, 0" : ", 1, 1";
  body += fmt::format(
      "setp.eq.u32 %p2, %r10, 0;\nwgmma.fence.sync.aligned;\n{} {{{}}}, %rd5, %rd6, %p2{};\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
      made.name, list, scales);
  for (std::size_t i = 0; i < sums; ++i) body += fmt::format("st.global.b32 [%rd4+{}], %c{};\n", i * 4, i);
  made.capability = 90;
  made.only_sm_90a = true;
  made.bound = integer ? "bit for bit" : fmt::format("2^{} of the sum of |a b| + |c|", std::log2(limit_of(shape)));
  const std::string ptx = kernel_text(body, "sm_90a");
  made.launch = [=](std::uint32_t seed) {
    TestLaunch launch{.ptx = ptx, .blocks = 1, .threads = 128, .in = {}, .out_words = 128 * sums};
    std::mt19937_64 random(seed);
    append_random(launch.in, random, shape.a, static_cast<std::size_t>(64 * shape.k));
    append_random(launch.in, random, shape.b, static_cast<std::size_t>(shape.n * shape.k));
    append_random(launch.in, random, sum_format(shape.d), 128 * sums * (half ? 2 : 1));
    return launch;
  };
  made.judge = [shape, layout](const TestLaunch& launch, const std::vector<std::uint32_t>& device,
                               const std::vector<std::uint32_t>& emulated, Executor& emulator) {
    return judge_sums(shape, layout, launch, device, emulated, emulator);
  };
  return made;
}

}  // namespace

std::vector<TestCase> matrix_cases() {
  std::vector<Shape> shapes;
  for (int k : {8, 16}) {
    shapes.push_back({16, 8, k, kF16, kF16, "f32"});
    shapes.push_back({16, 8, k, kF16, kF16, "f16"});
    shapes.push_back({16, 8, k, kBF16, kBF16, "f32"});
  }
  for (int k : {4, 8}) shapes.push_back({16, 8, k, kTF32, kTF32, "f32"});
  shapes.push_back({8, 8, 4, kF64, kF64, "f64"});
  for (const Format& a : {kS8, kU8}) {
    for (const Format& b : {kS8, kU8}) {
      shapes.push_back({16, 8, 16, a, b, "s32"});
      shapes.push_back({16, 8, 32, a, b, "s32"});
    }
  }
  shapes.push_back({16, 8, 32, kS4, kU4, "s32"});
  shapes.push_back({16, 8, 64, kS4, kS4, "s32"});
  for (const Format& a : {kE4M3, kE5M2}) {
    for (const Format& b : {kE4M3, kE5M2}) shapes.push_back({16, 8, 32, a, b, "f32"});
  }
  std::vector<TestCase> cases;
  for (const Shape& shape : shapes) cases.push_back(mma_case(shape));
  for (int n : {8, 64, 256}) {
    cases.push_back(wgmma_case({64, n, 16, kF16, kF16, "f32"}));
    cases.push_back(wgmma_case({64, n, 16, kF16, kF16, "f16"}));
    cases.push_back(wgmma_case({64, n, 16, kBF16, kBF16, "f32"}));
    cases.push_back(wgmma_case({64, n, 8, kTF32, kTF32, "f32"}));
    cases.push_back(wgmma_case({64, n, 32, kE4M3, kE5M2, "f32"}));
    cases.push_back(wgmma_case({64, n, 32, kS8, kU8, "s32"}));
  }
  return cases;
}

}  // namespace fusec::gpu_test
