// One instruction a case, on 16,384 random operands that favour what is awkward: specials, subnormals, neighbours.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <random>

#include "gpu/scalar_model.h"
#include "gpu/test_case.h"

namespace fusec::gpu_test {
namespace {

constexpr std::uint32_t kThreads = 128, kBlocks = 128, kElements = kThreads * kBlocks;

enum class Flavour : std::uint8_t { kBits, kSmall, kF16, kBF16, kF32, kF64, kRange };

struct Operand {
  const char* type = "b32";  // of the register
  Flavour flavour = Flavour::kBits;
  double low = 0, high = 0;  // kRange: float32, evenly in its logarithm where low > 0
};

enum class Measure : std::uint8_t { kExact, kRelative, kAbsolute, kUlp, kLog2 };

struct Row {
  std::string instruction;  // without operands
  std::string result;       // the register's type
  std::vector<Operand> operands;
  Measure measure = Measure::kExact;
  double limit = 0;
  const char* floats = nullptr;  // how results are read: "f16", "f32", "f64"; null: as bits
  Model model = nullptr;
  int capability = 80;
};

std::uint64_t random_bits(std::mt19937_64& random, const Operand& operand) {
  constexpr std::uint64_t kIntegers[] = {0,
                                         1,
                                         2,
                                         31,
                                         32,
                                         0x7f,
                                         0x80,
                                         0xff,
                                         0x7fff,
                                         0x8000,
                                         0xffff,
                                         0x7fffffff,
                                         0x80000000,
                                         0xffffffff,
                                         ~std::uint64_t{0},
                                         std::uint64_t{1} << 63};
  const auto special_or = [&random](int exponent_bits, int mantissa_bits) -> std::uint64_t {
    const std::uint64_t sign = random() & 1, top = (std::uint64_t{1} << exponent_bits) - 1;
    const std::uint64_t all = (std::uint64_t{1} << mantissa_bits) - 1;
    std::uint64_t exponent = random() & top, mantissa = random() & all;
    switch (random() % 12) {
      case 0:
        exponent = 0;  // subnormal
        break;
      case 1:
        exponent = mantissa = 0;
        break;
      case 2:
        exponent = top, mantissa = random() % 2 == 0 ? 0 : mantissa;  // infinity, NaN
        break;
      case 3:
        mantissa = random() % 2 == 0 ? 0 : all;
        break;
      case 4:
      case 5:
      case 6:
      case 7:
        exponent = top / 2 + random() % 8;  // near 1: sums cancel, products stay in range
        break;
      default:
        break;
    }
    return sign << (exponent_bits + mantissa_bits) | exponent << mantissa_bits | mantissa;
  };
  switch (operand.flavour) {
    case Flavour::kBits:
      return random() % 4 == 0 ? kIntegers[random() % std::size(kIntegers)] : random();
    case Flavour::kSmall:
      return random() % 70;
    case Flavour::kF16:
      return special_or(5, 10) | special_or(5, 10) << 16;
    case Flavour::kBF16:
      return special_or(8, 7) | special_or(8, 7) << 16;
    case Flavour::kF32:
      return special_or(8, 23);
    case Flavour::kF64:
      return special_or(11, 52);
    case Flavour::kRange: {
      const double part = static_cast<double>(random() >> 11) * 0x1p-53;
      const double value = operand.low > 0 ? operand.low * std::pow(operand.high / operand.low, part)
                                           : operand.low + (operand.high - operand.low) * part;
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    }
  }
  return 0;
}

std::string body_of(const Row& row) {
  std::string body = fmt::format(
      "mul.wide.u32 %rd1, %t, {};\nadd.u64 %rd1, %rd1, %rin;\nmul.wide.u32 %rd2, %t, 8;\nadd.u64 %rd2, %rd2, %rout;\n",
      8 * row.operands.size());
  std::string call = row.instruction + " %d";
  for (std::size_t i = 0; i < row.operands.size(); ++i) {
    body += fmt::format(".reg .{0} %a{1};\nld.global.{0} %a{1}, [%rd1+{2}];\n", row.operands[i].type, i, 8 * i);
    call += fmt::format(", %a{}", i);
  }
  return body + fmt::format(".reg .{0} %d;\n{1};\nst.global.{0} [%rd2], %d;\n", row.result, call);
}

std::uint64_t word(const std::vector<std::uint32_t>& words, std::size_t i) {
  return words[2 * i] | static_cast<std::uint64_t>(words[2 * i + 1]) << 32;
}

double read(const char* type, std::uint64_t bits) {
  const std::string_view name = type;
  if (name == "f64") return std::bit_cast<double>(bits);
  if (name == "f32") return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return half_value(static_cast<std::uint16_t>(bits));
}

// The error of `found` as a part of the bound: above 1 is wrong.
double error_of(const Row& row, std::uint64_t found_bits, std::uint64_t wanted_bits) {
  if (found_bits == wanted_bits) return 0;
  if (row.floats == nullptr) return 2;
  const double found = read(row.floats, found_bits), wanted = read(row.floats, wanted_bits);
  if (std::isnan(found) && std::isnan(wanted)) return 0;  // payloads are not specified
  if (row.measure == Measure::kExact || !std::isfinite(found) || !std::isfinite(wanted)) return 2;
  const double distance = std::fabs(found - wanted), size = std::fabs(wanted);
  const double ulp = std::max(std::ldexp(1.0, std::ilogb(size == 0 ? 0x1p-126 : size) - 23), 0x1p-149);
  // The emulator's own results are rounded: half a unit more.
  switch (row.measure) {
    case Measure::kUlp:
      return distance / ((row.limit + 0.5) * ulp);
    case Measure::kRelative:
      return distance / (row.limit * size + ulp / 2);
    case Measure::kAbsolute:
      return distance / (row.limit + ulp / 2);
    case Measure::kLog2:  // absolute where the result is small, relative else
      return distance / (row.limit * std::max(1.0, size) + ulp / 2);
    default:
      return 2;
  }
}

TestCase case_of(Row row) {
  TestCase made;
  made.name = row.instruction;
  made.capability = row.capability;
  constexpr const char* kNames[] = {"bit for bit", "relative 2^{:.1f}", "absolute 2^{:.1f}", "{} ulp", "2^{:.1f}"};
  const auto measure = static_cast<std::size_t>(row.measure);
  if (row.measure == Measure::kExact)
    made.bound = kNames[0];
  else
    made.bound =
        fmt::format(fmt::runtime(kNames[measure]), row.measure == Measure::kUlp ? row.limit : std::log2(row.limit));
  made.launch = [row](std::uint32_t seed) {
    TestLaunch launch{
        .ptx = kernel_text(body_of(row), fmt::format("sm_{}", row.capability)), .blocks = kBlocks, .threads = kThreads};
    std::mt19937_64 random(seed);
    for (std::uint32_t i = 0; i < kElements; ++i) {
      std::uint64_t before = 0;
      for (const Operand& operand : row.operands) {
        std::uint64_t bits = random_bits(random, operand);
        if (operand.flavour != Flavour::kRange && random() % 8 == 0) bits = before + random() % 3 - 1;  // a neighbour
        if (operand.flavour == Flavour::kSmall) bits &= 127;
        before = bits;
        launch.in.push_back(static_cast<std::uint32_t>(bits));
        launch.in.push_back(static_cast<std::uint32_t>(bits >> 32));
      }
    }
    launch.out_words = 2 * kElements;
    return launch;
  };
  made.judge = [row](const TestLaunch& launch, const std::vector<std::uint32_t>& device,
                     const std::vector<std::uint32_t>& emulated, Executor&) {
    Verdict verdict;
    for (std::size_t i = 0; i < kElements; ++i) {
      const double error = error_of(row, word(device, i), word(emulated, i));
      ++verdict.results;
      verdict.worst = std::max(verdict.worst, error);
      if (error <= 1) continue;
      if (verdict.wrong++ != 0) continue;
      verdict.first = row.instruction;
      for (std::size_t j = 0; j < row.operands.size(); ++j)
        verdict.first += fmt::format(" {:#x}", word(launch.in, i * row.operands.size() + j));
      verdict.first += fmt::format(": device {:#x}, emulator {:#x}", word(device, i), word(emulated, i));
    }
    return verdict;
  };
  if (row.model == nullptr) return made;
  made.model = [row](const TestLaunch& launch) {
    std::vector<std::uint32_t> out;
    for (std::size_t i = 0; i < kElements; ++i) {
      std::uint64_t operands[4] = {};
      for (std::size_t j = 0; j < row.operands.size(); ++j) operands[j] = word(launch.in, i * row.operands.size() + j);
      const std::uint64_t value = row.model(operands);
      out.push_back(static_cast<std::uint32_t>(value));
      out.push_back(static_cast<std::uint32_t>(value >> 32));
    }
    return out;
  };
  return made;
}

const Operand kInt{"b32", Flavour::kBits}, kLong{"b64", Flavour::kBits}, kShort{"b16", Flavour::kBits},
    kCount{"b32", Flavour::kSmall}, kFloat{"b32", Flavour::kF32}, kDouble{"b64", Flavour::kF64},
    kHalf{"b16", Flavour::kF16}, kBrain{"b16", Flavour::kBF16}, kHalves{"b32", Flavour::kF16},
    kBrains{"b32", Flavour::kBF16};

Operand between(double low, double high) {
  return {"b32", Flavour::kRange, low, high};
}

void add_integers(std::vector<Row>& rows) {
  for (const char* op : {"add.u32", "sub.u32", "mul.lo.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32",
                         "add.sat.s32", "sub.sat.s32", "mul.hi.u32", "mul.hi.s32", "mul24.lo.s32", "mul24.hi.u32",
                         "div.u32", "rem.u32", "shl.b32", "shr.u32", "shr.s32"}) {
    rows.push_back({.instruction = op, .result = "b32", .operands = {kInt, kInt}, .model = integer_model(op)});
  }
  for (const char* op :
       {"add.u64", "sub.u64", "mul.lo.u64", "mul.hi.u64", "mul.hi.s64", "min.s64", "max.u64", "xor.b64"})
    rows.push_back({.instruction = op, .result = "b64", .operands = {kLong, kLong}, .model = integer_model(op)});
  for (const char* op : {"mul.wide.u32", "mul.wide.s32"})
    rows.push_back({.instruction = op, .result = "b64", .operands = {kInt, kInt}, .model = integer_model(op)});
  for (const char* op :
       {"mad.lo.s32", "mad.hi.u32", "sad.s32", "sad.u32", "dp4a.s32.s32", "dp4a.u32.s32", "dp2a.lo.s32.u32",
        "dp2a.hi.u32.u32", "shf.l.wrap.b32", "shf.r.clamp.b32", "prmt.b32", "prmt.b32.f4e", "prmt.b32.rc8"}) {
    rows.push_back({.instruction = op, .result = "b32", .operands = {kInt, kInt, kInt}, .model = integer_model(op)});
  }
  for (const char* op : {"abs.s32", "neg.s32", "not.b32", "popc.b32", "clz.b32", "brev.b32", "bfind.u32", "bfind.s32",
                         "bfind.shiftamt.u32"}) {
    rows.push_back({.instruction = op, .result = "b32", .operands = {kInt}, .model = integer_model(op)});
  }
  for (const char* op : {"bfe.u32", "bfe.s32"})
    rows.push_back(
        {.instruction = op, .result = "b32", .operands = {kInt, kCount, kCount}, .model = integer_model(op)});
  rows.push_back({.instruction = "bfi.b32", .result = "b32", .operands = {kInt, kInt, kCount, kCount}});
  for (const char* op : {"add.u16x2", "min.s16x2", "max.u16x2"}) {
    rows.push_back({.instruction = op, .result = "b32", .operands = {kInt, kInt}, .capability = 90});
  }
}

void add_floats(std::vector<Row>& rows) {
  for (const char* rounding : {"rn", "rz", "rm", "rp"}) {
    for (const char* op : {"add", "sub", "mul", "div", "fma", "sqrt", "rcp"}) {
      const std::string_view name = op;
      const std::size_t sources = name == "fma" ? 3 : name == "sqrt" || name == "rcp" ? 1 : 2;
      for (const char* ending : {"f32", "ftz.f32", "sat.f32", "f64"}) {
        const bool wide = std::string_view(ending) == "f64";
        const std::string text = fmt::format("{}.{}.{}", op, rounding, ending);
        if (std::string_view(ending) == "sat.f32" && (name == "div" || sources == 1)) continue;  // no such form
        rows.push_back({.instruction = text,
                        .result = wide ? "b64" : "b32",
                        .operands = std::vector<Operand>(sources, wide ? kDouble : kFloat),
                        .floats = wide ? "f64" : "f32",
                        .model = float_model(op, rounding, ending)});
      }
    }
  }
  for (const char* op : {"min.f32", "max.f32", "min.NaN.f32", "max.NaN.f32", "min.ftz.f32"})
    rows.push_back({.instruction = op, .result = "b32", .operands = {kFloat, kFloat}, .floats = "f32"});
  for (const char* op : {"min.f64", "max.f64"})
    rows.push_back({.instruction = op, .result = "b64", .operands = {kDouble, kDouble}, .floats = "f64"});
  for (const char* op :
       {"add.rn.f16", "sub.rn.f16", "mul.rn.f16", "add.sat.f16", "mul.ftz.f16", "min.f16", "max.NaN.f16"})
    rows.push_back({.instruction = op, .result = "b16", .operands = {kHalf, kHalf}});
  for (const char* op : {"fma.rn.f16", "fma.rn.ftz.f16", "fma.rn.sat.f16", "fma.rn.relu.f16"})
    rows.push_back({.instruction = op, .result = "b16", .operands = {kHalf, kHalf, kHalf}});
  for (const char* op : {"fma.rn.bf16", "fma.rn.relu.bf16"})
    rows.push_back({.instruction = op, .result = "b16", .operands = {kBrain, kBrain, kBrain}});
  for (const char* op : {"min.bf16", "max.NaN.bf16"})
    rows.push_back({.instruction = op, .result = "b16", .operands = {kBrain, kBrain}});
  for (const char* op : {"add.rn.f16x2", "mul.rn.f16x2"})
    rows.push_back({.instruction = op, .result = "b32", .operands = {kHalves, kHalves}});
  rows.push_back({.instruction = "fma.rn.f16x2", .result = "b32", .operands = {kHalves, kHalves, kHalves}});
  rows.push_back({.instruction = "fma.rn.bf16x2", .result = "b32", .operands = {kBrains, kBrains, kBrains}});
}

void add_conversions(std::vector<Row>& rows) {
  const auto add = [&rows](const char* op, const char* to, const Operand& from) {
    rows.push_back({.instruction = op, .result = to, .operands = {from}});
  };
  for (const char* op :
       {"cvt.rzi.s32.f32", "cvt.rni.s32.f32", "cvt.rmi.u32.f32", "cvt.rpi.s32.f32", "cvt.rzi.u32.f32",
        "cvt.rzi.ftz.s32.f32", "cvt.rni.f32.f32", "cvt.rzi.f32.f32", "cvt.sat.f32.f32", "cvt.rna.tf32.f32"}) {
    add(op, "b32", kFloat);
  }
  for (const char* op : {"cvt.rzi.s64.f32", "cvt.rzi.u64.f32", "cvt.f64.f32"}) add(op, "b64", kFloat);
  for (const char* op :
       {"cvt.rn.f16.f32", "cvt.rz.f16.f32", "cvt.rn.relu.f16.f32", "cvt.rn.bf16.f32", "cvt.rz.bf16.f32"})
    add(op, "b16", kFloat);
  for (const char* op : {"cvt.rzi.s32.f64", "cvt.rni.u32.f64", "cvt.rn.f32.f64", "cvt.rp.f32.f64", "cvt.rz.f32.f64"})
    add(op, "b32", kDouble);
  for (const char* op : {"cvt.rzi.s64.f64", "cvt.rmi.u64.f64", "cvt.rni.f64.f64"}) add(op, "b64", kDouble);
  for (const char* op : {"cvt.rn.f32.s32", "cvt.rz.f32.u32", "cvt.rp.f32.s32", "cvt.sat.s8.s32", "cvt.sat.u16.s32",
                         "cvt.s32.s8", "cvt.u32.u16"}) {
    const bool narrow = std::string_view(op).ends_with("u16");
    add(op, "b32", narrow ? kShort : kInt);
  }
  for (const char* op : {"cvt.rn.f32.u64", "cvt.rm.f32.s64", "cvt.u32.u64"}) add(op, "b32", kLong);
  for (const char* op : {"cvt.rn.f64.u64", "cvt.rp.f64.s64"}) add(op, "b64", kLong);
  for (const char* op : {"cvt.f32.f16", "cvt.rzi.s32.f16"}) add(op, "b32", kHalf);
  for (const char* op : {"cvt.rn.f16.s32", "cvt.rn.f16.u32"}) add(op, "b16", kInt);
  for (const char* op : {"cvt.rn.f16x2.f32", "cvt.rn.bf16x2.f32", "cvt.rz.f16x2.f32"})
    rows.push_back({.instruction = op, .result = "b32", .operands = {kFloat, kFloat}});
}

// The bounds are those of the ISA's tables.
void add_approximations(std::vector<Row>& rows) {
  const double pi2 = 6.2831853;
  const auto add = [&rows](const char* op, std::vector<Operand> operands, Measure measure, double limit) {
    rows.push_back({.instruction = op,
                    .result = "b32",
                    .operands = std::move(operands),
                    .measure = measure,
                    .limit = limit,
                    .floats = "f32"});
  };
  add("rcp.approx.ftz.f32", {between(0x1p-120, 0x1p120)}, Measure::kUlp, 1);
  add("rcp.approx.ftz.f32", {kFloat}, Measure::kUlp, 1);
  add("sqrt.approx.ftz.f32", {between(0x1p-126, 0x1p127)}, Measure::kRelative, 0x1p-23);
  add("rsqrt.approx.ftz.f32", {between(0x1p-126, 0x1p127)}, Measure::kRelative, std::exp2(-22.9));
  add("sin.approx.ftz.f32", {between(-pi2, pi2)}, Measure::kAbsolute, std::exp2(-20.5));
  add("cos.approx.ftz.f32", {between(-pi2, pi2)}, Measure::kAbsolute, std::exp2(-20.5));
  add("lg2.approx.ftz.f32", {between(0x1p-126, 0x1p127)}, Measure::kLog2, 0x1p-22);
  add("lg2.approx.ftz.f32", {between(0.5, 2)}, Measure::kAbsolute, 0x1p-22);
  add("ex2.approx.ftz.f32", {between(-126, 128)}, Measure::kUlp, 2);
  add("tanh.approx.f32", {between(-9, 9)}, Measure::kRelative, 0x1p-11);
  add("div.approx.ftz.f32", {between(0x1p-60, 0x1p60), between(0x1p-60, 0x1p60)}, Measure::kUlp, 2);
  add("div.full.ftz.f32", {between(0x1p-60, 0x1p60), between(0x1p-60, 0x1p60)}, Measure::kUlp, 2);
}

}  // namespace

std::string kernel_text(const std::string& body, const std::string& target) {
  return fmt::format(
      ".version {}\n.target {}\n.address_size 64\n.visible .entry k(.param .u64 p_in, .param .u64 p_out)\n{{\n"
      ".reg .pred %p<8>;\n.reg .b32 %r<64>;\n.reg .b64 %rd<16>;\n.reg .b64 %rin;\n.reg .b64 %rout;\n.reg .b32 %t;\n"
      "ld.param.u64 %rin, [p_in];\nld.param.u64 %rout, [p_out];\nmov.u32 %t, %ctaid.x;\nmov.u32 %r1, %ntid.x;\n"
      "mov.u32 %r2, %tid.x;\nmad.lo.u32 %t, %t, %r1, %r2;\n{}ret;\n}}\n",
      target == "sm_80" ? "7.8" : "8.4", target, body);
}

std::vector<TestCase> scalar_cases() {
  std::vector<Row> rows;
  add_integers(rows);
  add_floats(rows);
  add_conversions(rows);
  add_approximations(rows);
  std::vector<TestCase> cases;
  for (Row& row : rows) cases.push_back(case_of(std::move(row)));
  return cases;
}

}  // namespace fusec::gpu_test
