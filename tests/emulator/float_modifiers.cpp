// .ftz and .sat on every float instruction that has them, and the approximate functions: the special values of the
// ISA's tables, and its bounds over wide sweeps.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "emulator/harness.h"

using namespace fusec::emulator;
using namespace fusec::emulator::testing;

namespace {

constexpr std::uint32_t kNan = 0x7fffffff, kInfinity = 0x7f800000, kMinusInfinity = 0xff800000, kOne = 0x3f800000;
constexpr std::uint32_t kTiny = 0x00000001, kMinusTiny = 0x80000001, kMinusZero = 0x80000000;

std::uint32_t apply(const std::string& op, const std::vector<std::uint32_t>& bits) {
  std::string text = op + " %d";
  std::vector<std::pair<std::string, std::uint64_t>> operands;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    text += fmt::format(", %a{}", i);
    operands.emplace_back("b32", bits[i]);
  }
  return static_cast<std::uint32_t>(evaluate(text, "b32", operands));
}
std::uint32_t half(const std::string& op, const std::vector<std::uint64_t>& bits) {
  std::string text = op + " %d";
  std::vector<std::pair<std::string, std::uint64_t>> operands;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    text += fmt::format(", %a{}", i);
    operands.emplace_back("b16", bits[i]);
  }
  return static_cast<std::uint32_t>(evaluate(text, "b16", operands));
}
std::uint32_t bits(float value) {
  return bits_of(value);
}
bool holds(const std::string& op, std::uint32_t a, std::uint32_t b) {
  return evaluate(op + " %d, %a0, %a1", "pred", {{"b32", a}, {"b32", b}}) == 1;
}

// The largest error of `instruction` (from %f1 to %f2) over `count` operands spread evenly between `low` and `high` (in
// their logarithm where `low` > 0), each measured by `error(result, operand)`.
template <class Error>
double worst_error(const std::string& instruction, double low, double high, Error error) {
  constexpr std::size_t kCount = 32768;
  std::vector<std::uint32_t> in(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const double part = static_cast<double>(i) / (kCount - 1);
    const double value = low > 0 ? low * std::pow(high / low, part) : low + (high - low) * part;
    in[i] = bits_of(static_cast<float>(value));
  }
  const RunResult result = run_body(
      "mov.u32 %r1, %ctaid.x;\nmad.lo.u32 %r1, %r1, 128, %t;\nmul.wide.u32 %rd1, %r1, 4;\nadd.u64 %rd2, %rin, %rd1;\n"
      "add.u64 %rd3, %rout, %rd1;\nld.global.f32 %f1, [%rd2];\n" +
          instruction + ";\nst.global.f32 [%rd3], %f2;\n",
      in, kCount, 128, kCount / 128);
  CHECK(result.report.findings.empty());
  double worst = 0;
  for (std::size_t i = 0; i < kCount; ++i)
    worst = std::max(worst, error(static_cast<double>(float_of(result.out[i])), static_cast<double>(float_of(in[i]))));
  return worst;
}

double ulp(double value) {
  return std::ldexp(1.0, std::max(std::ilogb(value), -126) - 23);
}

}  // namespace

TEST_CASE(".ftz takes subnormal operands and results as zeros of their sign") {
  for (const char* op : {"add.ftz.f32", "add.rn.ftz.f32", "add.rz.ftz.f32", "add.rp.ftz.f32"}) {
    CAPTURE(std::string(op));
    CHECK(apply(op, {kTiny, kTiny}) == 0);
    CHECK(apply(op, {kMinusTiny, kMinusTiny}) == kMinusZero);
    CHECK(apply(op, {0x00800000, 0x80800001}) == kMinusZero);  // a difference that is subnormal
    CHECK(apply(op, {kOne, kTiny}) == kOne);                   // rp: nothing was added
  }
  CHECK(apply("sub.ftz.f32", {0x00800001, 0x00800000}) == 0);
  CHECK(apply("sub.f32", {0x00800001, 0x00800000}) == kTiny);
  CHECK(apply("mul.rz.ftz.f32", {kMinusTiny, bits(0x1p126f)}) == kMinusZero);
  CHECK(apply("fma.rn.ftz.f32", {bits(0x1p-70f), bits(0x1p-70f), kTiny}) == 0);
  CHECK(apply("fma.rp.ftz.f32", {kTiny, kOne, kOne}) == kOne);
  CHECK(apply("div.rn.ftz.f32", {kTiny, kTiny}) == kNan);  // 0 / 0
  CHECK(apply("div.rn.f32", {kTiny, kTiny}) == kOne);
  CHECK(apply("div.rz.ftz.f32", {kOne, kMinusTiny}) == kMinusInfinity);
  CHECK(apply("rcp.rn.ftz.f32", {kTiny}) == kInfinity);
  CHECK(apply("rcp.rn.ftz.f32", {bits(0x1p127f)}) == 0);
  CHECK(apply("rcp.rn.f32", {bits(0x1p127f)}) == 0x00400000);
  CHECK(apply("sqrt.rn.ftz.f32", {kTiny}) == 0);
  CHECK(apply("sqrt.rz.ftz.f32", {kMinusTiny}) == kMinusZero);
  CHECK(apply("sqrt.rn.f32", {kMinusTiny}) == kNan);
  CHECK(apply("abs.ftz.f32", {kMinusTiny}) == 0);
  CHECK(apply("neg.ftz.f32", {kTiny}) == kMinusZero);
  CHECK(apply("neg.f32", {kTiny}) == kMinusTiny);
  CHECK(apply("min.ftz.f32", {kTiny, kOne}) == 0);
  CHECK(apply("max.NaN.ftz.f32", {kMinusTiny, kMinusZero}) == kMinusZero);
  CHECK(holds("setp.eq.ftz.f32", kTiny, kMinusTiny));
  CHECK(!holds("setp.gt.ftz.f32", kTiny, 0));
  CHECK(holds("setp.gt.f32", kTiny, 0));
  CHECK(apply("set.gt.ftz.u32.f32", {kTiny, 0}) == 0);
  CHECK(apply("set.gt.u32.f32", {kTiny, 0}) == 0xffffffff);
  CHECK(apply("slct.ftz.u32.f32", {1, 2, kMinusTiny}) == 1);  // -0 is not less than 0
  CHECK(apply("slct.u32.f32", {1, 2, kMinusTiny}) == 2);
  CHECK(apply("cvt.rzi.ftz.s32.f32", {kTiny}) == 0);
  CHECK(apply("cvt.rpi.ftz.s32.f32", {kTiny}) == 0);
  CHECK(apply("cvt.rpi.s32.f32", {kTiny}) == 1);
  CHECK(apply("cvt.rpi.ftz.f32.f32", {kTiny}) == 0);
  CHECK(evaluate("cvt.ftz.f64.f32 %d, %a0", "b64", {{"b32", kMinusTiny}}) == std::uint64_t{1} << 63);
  CHECK(evaluate("cvt.rn.ftz.f32.f64 %d, %a0", "b32", {{"b64", bits_of(0x1p-140)}}) == 0);
  // Of halves.
  CHECK(half("add.ftz.f16", {1, 1}) == 0);
  CHECK(half("add.f16", {1, 1}) == 2);
  CHECK(half("sub.ftz.f16", {0x8001, 1}) == 0x8000);
  CHECK(half("fma.rn.ftz.f16", {1, 0x3c00, 0x3c00}) == 0x3c00);
  CHECK(half("min.ftz.f16", {1, 0x3c00}) == 0);
  CHECK(half("abs.ftz.f16", {0x8001}) == 0);
  CHECK(half("neg.ftz.f16", {1}) == 0x8000);
  CHECK(evaluate("mul.ftz.f16x2 %d, %a0, %a1", "b32", {{"b32", 0x00013c00}, {"b32", 0x3c003c00}}) == 0x00003c00);
  CHECK(evaluate("setp.gt.ftz.f16 %d, %a0, %a1", "pred", {{"b16", 1}, {"b16", 0}}) == 0);
}

TEST_CASE(".sat clamps to [0, 1], and NaN to +0") {
  for (const char* op : {"add.sat.f32", "add.rn.sat.f32", "add.rz.sat.f32", "add.ftz.sat.f32", "add.rp.ftz.sat.f32"}) {
    CAPTURE(std::string(op));
    CHECK(apply(op, {kOne, kOne}) == kOne);
    CHECK(apply(op, {bits(-0.5f), bits(0.25f)}) == 0);
    CHECK(apply(op, {bits(0.5f), bits(0.25f)}) == bits(0.75f));
    CHECK(apply(op, {kNan, kOne}) == 0);
    CHECK(apply(op, {kMinusInfinity, kOne}) == 0);
  }
  CHECK(apply("sub.sat.f32", {kOne, bits(-3.0f)}) == kOne);
  CHECK(apply("sub.ftz.sat.f32", {0, kOne}) == 0);
  CHECK(apply("mul.rm.sat.f32", {kMinusZero, kOne}) == 0);  // -0 becomes +0
  CHECK(apply("mul.ftz.sat.f32", {kInfinity, kOne}) == kOne);
  CHECK(apply("fma.rn.sat.f32", {bits(2.0f), bits(2.0f), bits(-3.5f)}) == bits(0.5f));
  CHECK(apply("fma.rz.ftz.sat.f32", {bits(2.0f), bits(2.0f), kOne}) == kOne);
  CHECK(apply("fma.rn.sat.f32", {kInfinity, 0, kOne}) == 0);
  CHECK(apply("cvt.sat.f32.f32", {kNan}) == 0);
  CHECK(apply("cvt.rni.sat.f32.f32", {bits(0.6f)}) == kOne);
  CHECK(half("add.sat.f16", {0x7e00, 0x3c00}) == 0);
  CHECK(half("sub.sat.f16", {0, 0x3c00}) == 0);
  CHECK(half("mul.sat.f16", {0x4000, 0x4000}) == 0x3c00);
  CHECK(half("fma.rn.sat.f16", {0x4000, 0x3c00, 0xbe00}) == 0x3800);
  CHECK(half("fma.rn.relu.f16", {0x7e00, 0x3c00, 0}) == 0x7fff);  // .relu keeps NaN, as the canonical one
  CHECK(half("fma.rn.relu.bf16", {0xbf80, 0x3f80, 0}) == 0);
  CHECK(evaluate("add.sat.f16x2 %d, %a0, %a1", "b32", {{"b32", 0x3c00bc00}, {"b32", 0x3c000000}}) == 0x3c000000);
}

TEST_CASE("approximate functions of special values") {
  struct Row {
    const char* op;
    std::uint32_t minus_infinity, minus_subnormal, minus_zero, zero, subnormal, infinity;
  };
  // PTX ISA, the table of each instruction; subnormals without and with .ftz.
  const Row rows[] = {
      {"rcp.approx.ftz.f32", kMinusZero, kMinusInfinity, kMinusInfinity, kInfinity, kInfinity, 0},
      {"sqrt.approx.f32", kNan, kNan, kMinusZero, 0, 0x1a3504f3, kInfinity},
      {"sqrt.approx.ftz.f32", kNan, kMinusZero, kMinusZero, 0, 0, kInfinity},
      {"rsqrt.approx.ftz.f32", kNan, kMinusInfinity, kMinusInfinity, kInfinity, kInfinity, 0},
      {"lg2.approx.f32", kNan, kNan, kMinusInfinity, kMinusInfinity, bits(-149.0f), kInfinity},
      {"lg2.approx.ftz.f32", kNan, kMinusInfinity, kMinusInfinity, kMinusInfinity, kMinusInfinity, kInfinity},
      {"ex2.approx.f32", 0, kOne, kOne, kOne, kOne, kInfinity},
      {"ex2.approx.ftz.f32", 0, kOne, kOne, kOne, kOne, kInfinity},
      {"sin.approx.ftz.f32", kNan, kMinusZero, kMinusZero, 0, 0, kNan},
      {"cos.approx.f32", kNan, kOne, kOne, kOne, kOne, kNan},
      {"cos.approx.ftz.f32", kNan, kOne, kOne, kOne, kOne, kNan},
      {"tanh.approx.f32", bits(-1.0f), kMinusTiny, kMinusZero, 0, kTiny, kOne},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.op));
    CHECK(apply(row.op, {kMinusInfinity}) == row.minus_infinity);
    CHECK(apply(row.op, {kMinusTiny}) == row.minus_subnormal);
    CHECK(apply(row.op, {kMinusZero}) == row.minus_zero);
    CHECK(apply(row.op, {0}) == row.zero);
    if (std::string_view(row.op) != "sqrt.approx.f32") CHECK(apply(row.op, {kTiny}) == row.subnormal);
    CHECK(apply(row.op, {kInfinity}) == row.infinity);
    CHECK(apply(row.op, {kNan}) == kNan);
  }
  CHECK(apply("div.approx.ftz.f32", {kTiny, kOne}) == 0);
  CHECK(apply("div.full.ftz.f32", {kOne, kTiny}) == kInfinity);
  CHECK(apply("div.approx.f32", {kInfinity, bits(0x1.8p126f)}) == kNan);  // divisors beyond 2^126
}

TEST_CASE("approximate functions keep the documented bounds over wide sweeps") {
  const auto units = [](auto exact) {
    return [exact](double found, double x) { return std::fabs(found - exact(x)) / ulp(exact(x)); };
  };
  const auto relative = [](auto exact) {
    return [exact](double found, double x) { return std::fabs(found - exact(x)) / std::fabs(exact(x)); };
  };
  const auto absolute = [](auto exact) {
    return [exact](double found, double x) { return std::fabs(found - exact(x)); };
  };
  const auto inverse = [](double x) { return 1 / x; };
  const auto inverse_root = [](double x) { return 1 / std::sqrt(x); };
  const auto root = [](double x) { return std::sqrt(x); };
  const auto sine = [](double x) { return std::sin(x); };
  const auto cosine = [](double x) { return std::cos(x); };
  const auto logarithm = [](double x) { return std::log2(x); };
  const auto power = [](double x) { return std::exp2(x); };
  const auto tangent = [](double x) { return std::tanh(x); };
  for (const char* ftz : {"", ".ftz"}) {
    const auto op = [ftz](const char* name) { return fmt::format("{}.approx{}.f32 %f2, %f1", name, ftz); };
    CHECK(worst_error(op("rcp"), 0x1p-125, 0x1p125, units(inverse)) <= 1);
    CHECK(worst_error(op("sqrt"), 0x1p-126, 0x1p127, relative(root)) <= 0x1p-23);
    CHECK(worst_error(op("rsqrt"), 0x1p-126, 0x1p127, relative(inverse_root)) <= std::exp2(-22.9));
    CHECK(worst_error(op("sin"), -6.2831853, 6.2831853, absolute(sine)) <= std::exp2(-20.5));
    CHECK(worst_error(op("cos"), -6.2831853, 6.2831853, absolute(cosine)) <= std::exp2(-20.5));
    CHECK(worst_error(op("lg2"), 0.5, 2, absolute(logarithm)) <= 0x1p-22);
    CHECK(worst_error(op("lg2"), 0x1p-126, 0.5, relative(logarithm)) <= 0x1p-22);
    CHECK(worst_error(op("lg2"), 2, 0x1p127, relative(logarithm)) <= 0x1p-22);
    CHECK(worst_error(op("ex2"), -125.99, 127.99, units(power)) <= 2);
  }
  CHECK(worst_error("tanh.approx.f32 %f2, %f1", -20, -0x1p-20, relative(tangent)) <= 0x1p-11);
  CHECK(worst_error("tanh.approx.f32 %f2, %f1", 0x1p-100, 20, relative(tangent)) <= 0x1p-11);
  const auto third = [](double x) { return x / 3; };
  for (const char* op : {"div.approx", "div.approx.ftz", "div.full", "div.full.ftz"})
    CHECK(worst_error(fmt::format("mov.f32 %f3, 0f40400000;\n{}.f32 %f2, %f1, %f3", op), 0x1p-100, 0x1p100,
                      units(third)) <= 2);
}

TEST_CASE("approximate functions of halves and float64") {
  const auto f16 = [](std::uint16_t value) { return std::ldexp((value & 0x3ff) | 0x400, (value >> 10) - 25); };
  for (std::uint16_t x = 0x2c00; x < 0x4400; x += 37) {  // 2^-4 to 4
    CAPTURE(x);
    const double value = f16(x);
    const double power = f16(static_cast<std::uint16_t>(half("ex2.approx.f16", {x})));
    CHECK(std::fabs(power - std::exp2(value)) <= std::exp2(value) * (std::exp2(-9.9) + 0x1p-11));
    const double tangent = f16(static_cast<std::uint16_t>(half("tanh.approx.f16", {x})));
    CHECK(std::fabs(tangent - std::tanh(value)) <= std::exp2(-10.987) + 0x1p-12);
    const std::uint32_t brain = half("tanh.approx.bf16", {bits(static_cast<float>(value)) >> 16});
    const double rounded = static_cast<double>(float_of(bits(static_cast<float>(value)) & 0xffff0000u));
    CHECK(std::fabs(static_cast<double>(float_of(brain << 16)) - std::tanh(rounded)) <= 0x1p-8);
  }
  CHECK(half("ex2.approx.ftz.bf16", {0x4000}) == 0x4080);
  CHECK(evaluate("ex2.approx.f16x2 %d, %a0", "b32", {{"b32", 0x40003c00}}) == 0x44004000);
  CHECK(evaluate("tanh.approx.bf16x2 %d, %a0", "b32", {{"b32", 0x00008000}}) == 0x00008000);
  const auto f64 = [](const char* op, double x) {
    const std::uint64_t raw = evaluate(std::string(op) + " %d, %a0", "b64", {{"b64", bits_of(x)}});
    double value;
    std::memcpy(&value, &raw, 8);
    return value;
  };
  for (double x : {1.0, 3.0, 1e-100, 7e200}) {
    CHECK(std::fabs(f64("rcp.approx.ftz.f64", x) * x - 1) <= 0x1p-19);
    CHECK(std::fabs(f64("rsqrt.approx.ftz.f64", x) * std::sqrt(x) - 1) <= 0x1p-19);
    CHECK(std::fabs(f64("rsqrt.approx.f64", x) * std::sqrt(x) - 1) <= 0x1p-51);
  }
  CHECK(f64("rcp.approx.ftz.f64", -0.0) == -std::numeric_limits<double>::infinity());
}
