// float32 and float64 arithmetic in all rounding modes, with .ftz and .sat, and the approximate functions. A float32
// result that is NaN is the canonical NaN, as PTX requires.
#include <cmath>

#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"

namespace fusec::emulator {
namespace {

enum class FloatOp : std::uint8_t {
  kAdd,
  kSub,
  kMul,
  kFma,
  kDiv,
  kSqrt,
  kRcp,
  kRsqrt,
  kSin,
  kCos,
  kEx2,
  kLg2,
  kTanh,
  kDivFull,
  kDivApprox
};

// The exact result rounded to odd in float64; rounding it again gives the correctly rounded float32.
double odd_result(FloatOp op, double a, double b, double c) {
  switch (op) {
    case FloatOp::kAdd:
      return add_odd(a, b);
    case FloatOp::kSub:
      return add_odd(a, -b);
    case FloatOp::kMul:
      return a * b;
    case FloatOp::kFma:
      return add_odd(a * b, c);
    case FloatOp::kDiv:
      return divide_odd(a, b);
    case FloatOp::kRcp:
      return divide_odd(1.0, a);
    case FloatOp::kSqrt:
      return square_root_odd(a);
    default:
      return 0;
  }
}

// Rounding down makes -0 of an exact zero from operands of opposite sign. A zero that is rounded to odd is always
// exact.
double signed_zero(FloatOp op, double result, double a, double b, double c, Rounding rounding) {
  if (result != 0 || rounding != Rounding::kDown) return result;
  if (op == FloatOp::kAdd && a != 0) return -0.0;
  if (op == FloatOp::kSub && a != 0) return -0.0;
  if (op == FloatOp::kAdd) return std::signbit(a) || std::signbit(b) ? -0.0 : 0.0;
  if (op == FloatOp::kSub) return std::signbit(a) || !std::signbit(b) ? -0.0 : 0.0;
  if (op == FloatOp::kFma) return std::signbit(a * b) || std::signbit(c) ? -0.0 : 0.0;
  return result;
}

double quick_float64(FloatOp op, double a, double b, double c, Rounding rounding) {
  switch (op) {
    case FloatOp::kAdd:
      return add_double(a, b, rounding);
    case FloatOp::kSub:
      return add_double(a, -b, rounding);
    case FloatOp::kMul:
      return multiply_double(a, b, rounding);
    case FloatOp::kFma:
      return fma_double(a, b, c, rounding);
    case FloatOp::kDiv:
      return divide_double(a, b, rounding);
    case FloatOp::kRcp:
      return divide_double(1.0, a, rounding);
    case FloatOp::kSqrt:
      return square_root_double(a, rounding);
    default:
      return 0;
  }
}

template <FloatOp kOp, class T>
T plain(T a, T b, T c) {
  if constexpr (kOp == FloatOp::kAdd) return a + b;
  if constexpr (kOp == FloatOp::kSub) return a - b;
  if constexpr (kOp == FloatOp::kMul) return a * b;
  if constexpr (kOp == FloatOp::kDiv) return a / b;
  if constexpr (kOp == FloatOp::kRcp) return T(1) / a;
  if constexpr (kOp == FloatOp::kSqrt) return std::sqrt(a);
  if constexpr (kOp == FloatOp::kFma) {
    if constexpr (std::is_same_v<T, float>)
      return fma_single(a, b, c);
    else
      return std::fma(a, b, c);
  }
}

// float32 arithmetic with rounding to nearest even, the most common case.
template <FloatOp kOp, bool kFlush, bool kSaturate>
void single(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const auto one = [](float a, float b, float c) {
    if constexpr (kFlush) {
      a = flush(a);
      b = flush(b);
      c = flush(c);
    }
    float result = canonical(plain<kOp, float>(a, b, c));
    if constexpr (kFlush) result = flush(result);
    if constexpr (kSaturate) result = saturate_unit(result);
    return result;
  };
  if constexpr (kOp == FloatOp::kFma) {
    map_lanes<float, float, float, float>(warp, in, lanes, one);
  } else if constexpr (kOp == FloatOp::kRcp || kOp == FloatOp::kSqrt) {
    map_lanes<float, float>(warp, in, lanes, [one](float a) { return one(a, 0, 0); });
  } else {
    map_lanes<float, float, float>(warp, in, lanes, [one](float a, float b) { return one(a, b, 0); });
  }
}

template <FloatOp kOp>
Handler single_handler(bool flushed, bool saturated) {
  if (flushed) return saturated ? single<kOp, true, true> : single<kOp, true, false>;
  return saturated ? single<kOp, false, true> : single<kOp, false, false>;
}

Handler single_handler(FloatOp op, bool flushed, bool saturated) {
  switch (op) {
    case FloatOp::kAdd:
      return single_handler<FloatOp::kAdd>(flushed, saturated);
    case FloatOp::kSub:
      return single_handler<FloatOp::kSub>(flushed, saturated);
    case FloatOp::kMul:
      return single_handler<FloatOp::kMul>(flushed, saturated);
    case FloatOp::kFma:
      return single_handler<FloatOp::kFma>(flushed, saturated);
    case FloatOp::kDiv:
      return single_handler<FloatOp::kDiv>(flushed, saturated);
    case FloatOp::kRcp:
      return single_handler<FloatOp::kRcp>(flushed, saturated);
    case FloatOp::kSqrt:
      return single_handler<FloatOp::kSqrt>(flushed, saturated);
    default:
      return nullptr;
  }
}

template <FloatOp kOp>
void double_nearest(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  if constexpr (kOp == FloatOp::kFma) {
    map_lanes<double, double, double, double>(warp, in, lanes, plain<kOp, double>);
  } else if constexpr (kOp == FloatOp::kRcp || kOp == FloatOp::kSqrt) {
    map_lanes<double, double>(warp, in, lanes, [](double a) { return plain<kOp, double>(a, 0, 0); });
  } else {
    map_lanes<double, double, double>(warp, in, lanes, [](double a, double b) { return plain<kOp, double>(a, b, 0); });
  }
}

Handler double_handler(FloatOp op) {
  switch (op) {
    case FloatOp::kAdd:
      return double_nearest<FloatOp::kAdd>;
    case FloatOp::kSub:
      return double_nearest<FloatOp::kSub>;
    case FloatOp::kMul:
      return double_nearest<FloatOp::kMul>;
    case FloatOp::kFma:
      return double_nearest<FloatOp::kFma>;
    case FloatOp::kDiv:
      return double_nearest<FloatOp::kDiv>;
    case FloatOp::kRcp:
      return double_nearest<FloatOp::kRcp>;
    case FloatOp::kSqrt:
      return double_nearest<FloatOp::kSqrt>;
    default:
      return nullptr;
  }
}

// float32 arithmetic with any rounding; Instruction::mode is the FloatOp.
void single_directed(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const auto op = static_cast<FloatOp>(in.mode);
  const Lanes<float> zeros{};
  const Lanes<float> a = load_lanes<float>(warp, in.a);
  const Lanes<float> b = in.b == kNoSlot ? zeros : load_lanes<float>(warp, in.b);
  const Lanes<float> c = in.c == kNoSlot ? zeros : load_lanes<float>(warp, in.c);
  Lanes<float> result;
  for (int lane = 0; lane < kLanes; ++lane) {
    float x = a.at[lane], y = b.at[lane], z = c.at[lane];
    if (in.flush) x = flush(x), y = flush(y), z = flush(z);
    const double exact = signed_zero(op, odd_result(op, x, y, z), x, y, z, in.rounding);
    float value = round_to_float(exact, in.rounding);
    if (in.flush) value = flush(value);
    result.at[lane] = in.saturate ? saturate_unit(value) : value;
  }
  store_lanes(warp, in.d, result, lanes);
}

void double_directed(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const auto op = static_cast<FloatOp>(in.mode);
  const Lanes<double> zeros{};
  const Lanes<double> a = load_lanes<double>(warp, in.a);
  const Lanes<double> b = in.b == kNoSlot ? zeros : load_lanes<double>(warp, in.b);
  const Lanes<double> c = in.c == kNoSlot ? zeros : load_lanes<double>(warp, in.c);
  Lanes<double> result;
  for (int lane = 0; lane < kLanes; ++lane) {
    result.at[lane] = quick_float64(op, a.at[lane], b.at[lane], c.at[lane], in.rounding);
  }
  store_lanes(warp, in.d, result, lanes);
}

// ---- approximate functions: computed in float64, rounded once

double approximate(FloatOp op, double a, double b) {
  switch (op) {
    case FloatOp::kSqrt:
      return std::sqrt(a);
    case FloatOp::kRcp:
      return 1.0 / a;
    case FloatOp::kRsqrt:
      return 1.0 / std::sqrt(a);
    case FloatOp::kSin:
      return std::sin(a);
    case FloatOp::kCos:
      return std::cos(a);
    case FloatOp::kEx2:
      return std::exp2(a);
    case FloatOp::kLg2:
      return std::log2(a);
    case FloatOp::kTanh:
      return std::tanh(a);
    case FloatOp::kDivFull:
      return a / b;
    case FloatOp::kDivApprox: {
      // As documented, divisors beyond 2^126 give 0, or NaN for an infinite dividend.
      const double size = std::fabs(b);
      if (size > 0x1p126 && size < std::numeric_limits<double>::infinity()) {
        return std::isinf(a) ? std::numeric_limits<double>::quiet_NaN() : std::copysign(0.0, a * (b > 0 ? 1.0 : -1.0));
      }
      return a / b;
    }
    default:
      return 0;
  }
}

void single_approximate(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const auto op = static_cast<FloatOp>(in.mode);
  const Lanes<float> a = load_lanes<float>(warp, in.a);
  Lanes<float> b{}, result{};
  if (in.b != kNoSlot) b = load_lanes<float>(warp, in.b);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    float x = a.at[lane], y = b.at[lane];
    if (in.flush) x = flush(x), y = flush(y);
    const float value = canonical(static_cast<float>(approximate(op, x, y)));
    result.at[lane] = in.flush ? flush(value) : value;
  }
  store_lanes(warp, in.d, result, lanes);
}

// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 ignore the low 32 bits of operand and result. rsqrt.approx.f64 without
// .ftz has full precision: CUDA's rsqrt(double), with an error of one ulp, compiles to it.
void double_approximate(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const auto op = static_cast<FloatOp>(in.mode);
  const bool coarse = in.option;
  map_lanes<double, double>(warp, in, lanes, [op, coarse](double a) {
    const auto trim = [](double value) {
      return value != value ? value : std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & 0xffffffff00000000u);
    };
    const double value = approximate(op, coarse ? trim(a) : a, 0);
    return coarse ? trim(value) : value;
  });
}

// Two float32 in one register (f32x2, from sm_100 on).
void packed_single(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const auto op = static_cast<FloatOp>(in.mode);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint64_t a = load_raw(warp, in.a, 8, lane), b = load_raw(warp, in.b, 8, lane);
    const std::uint64_t c = in.c == kNoSlot ? 0 : load_raw(warp, in.c, 8, lane);
    std::uint64_t result = 0;
    for (int half = 0; half < 2; ++half) {
      const auto part = [&](std::uint64_t value) {
        const float number = std::bit_cast<float>(static_cast<std::uint32_t>(value >> (32 * half)));
        return in.flush ? flush(number) : number;
      };
      const double exact = odd_result(op, part(a), part(b), part(c));
      const float value = round_to_float(signed_zero(op, exact, part(a), part(b), part(c), in.rounding), in.rounding);
      result |= static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(in.flush ? flush(value) : value))
                << (32 * half);
    }
    store_raw(warp, in.d, 8, lane, result);
  }
}

struct OpRow {
  std::string_view name;
  FloatOp op;
  std::size_t sources;
};
constexpr OpRow kFloatRows[] = {{"add", FloatOp::kAdd, 2}, {"sub", FloatOp::kSub, 2},   {"mul", FloatOp::kMul, 2},
                                {"fma", FloatOp::kFma, 3}, {"mad", FloatOp::kFma, 3},   {"div", FloatOp::kDiv, 2},
                                {"rcp", FloatOp::kRcp, 1}, {"sqrt", FloatOp::kSqrt, 1}, {"rsqrt", FloatOp::kRsqrt, 1},
                                {"sin", FloatOp::kSin, 1}, {"cos", FloatOp::kCos, 1},   {"ex2", FloatOp::kEx2, 1},
                                {"lg2", FloatOp::kLg2, 1}, {"tanh", FloatOp::kTanh, 1}};

bool only_approximate(FloatOp op) {
  return op == FloatOp::kRsqrt || op == FloatOp::kSin || op == FloatOp::kCos || op == FloatOp::kEx2 ||
         op == FloatOp::kLg2 || op == FloatOp::kTanh;
}

void choose_arithmetic(Decoder& decoder, FloatOp op, Type type) {
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  const bool approximate_form = suffixes.take("approx"), full = suffixes.take("full");
  const std::optional<Rounding> rounding = suffixes.take_rounding();
  out.flush = suffixes.take("ftz");
  out.saturate = suffixes.take("sat");
  out.rounding = rounding.value_or(Rounding::kNearestEven);
  out.mode = static_cast<std::uint16_t>(op);
  if (type == Type::kF32x2) {
    out.handler = packed_single;
    return;
  }
  if (approximate_form || full || only_approximate(op)) {
    if (op == FloatOp::kDiv) out.mode = static_cast<std::uint16_t>(full ? FloatOp::kDivFull : FloatOp::kDivApprox);
    if (op != FloatOp::kDiv && op != FloatOp::kRcp && op != FloatOp::kSqrt && !only_approximate(op)) decoder.unknown();
    // float64 has only the approximate reciprocals.
    if (type == Type::kF64 && op != FloatOp::kRcp && op != FloatOp::kRsqrt) decoder.unknown();
    if (out.saturate) decoder.unknown();
    out.kind = InstructionClass::kSpecialFunction;
    out.option = type == Type::kF64 && out.flush;
    out.handler = type == Type::kF64 ? double_approximate : single_approximate;
    return;
  }
  if (type == Type::kF64) {
    if (out.flush || out.saturate) decoder.unknown();
    out.handler = out.rounding == Rounding::kNearestEven ? double_handler(op) : double_directed;
  } else {
    out.handler =
        out.rounding == Rounding::kNearestEven ? single_handler(op, out.flush, out.saturate) : single_directed;
  }
}

}  // namespace

bool decode_float(Decoder& decoder) {
  const OpRow* row = nullptr;
  for (const OpRow& candidate : kFloatRows) {
    if (candidate.name == decoder.base()) row = &candidate;
  }
  const std::vector<std::string>& words = decoder.ptx().suffixes;
  if (row == nullptr || words.empty()) return false;
  const std::optional<Type> type = parse_type(words.back());
  if (!type || (*type != Type::kF32 && *type != Type::kF64 && *type != Type::kF32x2)) return false;
  // Mixed precision such as add.f32.f16: decode_half.cpp decodes it.
  if (words.size() > 1 && parse_type(words[words.size() - 2])) return false;
  decoder.suffixes.take_type();
  Instruction& out = decoder.out;
  out.kind = *type == Type::kF64 ? InstructionClass::kFloat64 : InstructionClass::kFloat32;
  choose_arithmetic(decoder, row->op, *type);
  if (out.handler == nullptr) decoder.unknown();
  const std::size_t sources = row->sources;
  decoder.expect_operands(sources + 1, sources + 1);
  out.d = decoder.destination(decoder.operand(0), bytes(*type));
  out.a = decoder.source(decoder.operand(1), *type);
  if (sources > 1) out.b = decoder.source(decoder.operand(2), *type);
  if (sources > 2) out.c = decoder.source(decoder.operand(3), *type);
  return true;
}

}  // namespace fusec::emulator
