// float16 and bfloat16 arithmetic, scalar and packed pairs. Each operation is computed exactly, or rounded to odd, in
// float64 and then rounded once.
#include <cmath>

#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"

namespace fusec::emulator {
namespace {

enum class HalfOp : std::uint8_t { kAdd, kSub, kMul, kFma, kMin, kMax, kAbs, kNeg, kEx2, kTanh };

struct HalfRow {
  std::string_view name;
  HalfOp op;
  std::size_t sources;
};
constexpr HalfRow kHalfRows[] = {{"add", HalfOp::kAdd, 2},  {"sub", HalfOp::kSub, 2}, {"mul", HalfOp::kMul, 2},
                                 {"fma", HalfOp::kFma, 3},  {"min", HalfOp::kMin, 2}, {"max", HalfOp::kMax, 2},
                                 {"abs", HalfOp::kAbs, 1},  {"neg", HalfOp::kNeg, 1}, {"ex2", HalfOp::kEx2, 1},
                                 {"tanh", HalfOp::kTanh, 1}};

constexpr std::uint16_t kPropagate = 1, kXorSign = 2, kAbsolute = 4, kHalfRelu = 8;

std::uint16_t flush_half(std::uint16_t bits) {
  return (bits & 0x7c00u) == 0 ? bits & 0x8000u : bits;
}

template <bool kBrain>
double widen(std::uint16_t bits) {
  return kBrain ? bfloat_to_float(bits) : half_to_float(bits);
}

template <bool kBrain>
std::uint16_t narrow(double value) {
  return static_cast<std::uint16_t>(encode_float(value, kBrain ? kBFloat : kHalf, Rounding::kNearestEven));
}

template <bool kBrain>
bool is_nan(std::uint16_t bits) {
  return (bits & 0x7fffu) > (kBrain ? 0x7f80u : 0x7c00u);
}

template <bool kBrain>
std::uint16_t extreme(const Instruction& in, bool wants_max, std::uint16_t a, std::uint16_t b) {
  const bool negative = ((a ^ b) & 0x8000u) != 0;
  if ((in.mode & (kAbsolute | kXorSign)) != 0) a &= 0x7fff, b &= 0x7fff;
  std::uint16_t value;
  if (is_nan<kBrain>(a) || is_nan<kBrain>(b)) {
    const bool both = is_nan<kBrain>(a) && is_nan<kBrain>(b);
    if (both || (in.mode & kPropagate) != 0) return 0x7fff;
    value = is_nan<kBrain>(a) ? b : a;
  } else {
    const double x = widen<kBrain>(a), y = widen<kBrain>(b);
    const bool a_less = x == y ? std::signbit(x) : x < y;
    value = a_less != wants_max ? a : b;
  }
  if ((in.mode & kXorSign) != 0) value = static_cast<std::uint16_t>((value & 0x7fffu) | (negative ? 0x8000u : 0));
  return value;
}

template <bool kBrain>
std::uint16_t compute(const Instruction& in, HalfOp op, std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  if (in.flush && !kBrain) a = flush_half(a), b = flush_half(b), c = flush_half(c);
  const double x = widen<kBrain>(a), y = widen<kBrain>(b), z = widen<kBrain>(c);
  std::uint16_t result = 0;
  switch (op) {
    case HalfOp::kAdd:
      result = narrow<kBrain>(add_odd(x, y));
      break;
    case HalfOp::kSub:
      result = narrow<kBrain>(add_odd(x, -y));
      break;
    case HalfOp::kMul:
      result = narrow<kBrain>(x * y);
      break;
    case HalfOp::kFma:
      result = narrow<kBrain>(add_odd(x * y, z));
      break;
    case HalfOp::kMin:
      result = extreme<kBrain>(in, false, a, b);
      break;
    case HalfOp::kMax:
      result = extreme<kBrain>(in, true, a, b);
      break;
    case HalfOp::kAbs:
      result = a & 0x7fff;
      break;
    case HalfOp::kNeg:
      result = a ^ 0x8000;
      break;
    case HalfOp::kEx2:
      result = narrow<kBrain>(std::exp2(x));
      break;
    case HalfOp::kTanh:
      result = narrow<kBrain>(std::tanh(x));
      break;
  }
  if (in.flush && !kBrain) result = flush_half(result);
  if (in.saturate) {
    const double value = widen<kBrain>(result);
    if (!(value > 0))
      result = 0;
    else if (value > 1)
      result = narrow<kBrain>(1);
  }
  if ((in.mode & kHalfRelu) != 0) {
    if (is_nan<kBrain>(result))
      result = 0x7fff;
    else if ((result & 0x8000u) != 0)
      result = 0;
  }
  return result;
}

template <bool kBrain, bool kPair>
void half_arithmetic(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const auto op = static_cast<HalfOp>(in.immediate);
  const int width = kPair ? 4 : 2;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint64_t a = load_raw(warp, in.a, width, lane);
    const std::uint64_t b = in.b == kNoSlot ? 0 : load_raw(warp, in.b, width, lane);
    const std::uint64_t c = in.c == kNoSlot ? 0 : load_raw(warp, in.c, width, lane);
    std::uint64_t result = compute<kBrain>(in, op, static_cast<std::uint16_t>(a), static_cast<std::uint16_t>(b),
                                           static_cast<std::uint16_t>(c));
    if (kPair) {
      result |= static_cast<std::uint64_t>(compute<kBrain>(in, op, static_cast<std::uint16_t>(a >> 16),
                                                           static_cast<std::uint16_t>(b >> 16),
                                                           static_cast<std::uint16_t>(c >> 16)))
                << 16;
    }
    store_raw(warp, in.d, width, lane, result);
  }
}

// add/sub/fma.f32.f16 and .bf16: 16-bit operands, float32 accumulator.
void mixed(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const bool brain = in.from == Type::kBF16;
  const auto op = static_cast<HalfOp>(in.immediate);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const auto widened = [&](Slot slot) {
      const auto raw = static_cast<std::uint16_t>(load_raw(warp, slot, 2, lane));
      return static_cast<double>(brain ? bfloat_to_float(raw) : half_to_float(raw));
    };
    const auto single = [&](Slot slot) {
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(load_raw(warp, slot, 4, lane))));
    };
    const double a = widened(in.a);
    const double exact = op == HalfOp::kFma   ? add_odd(a * widened(in.b), single(in.c))
                         : op == HalfOp::kAdd ? add_odd(a, single(in.b))
                                              : add_odd(a, -single(in.b));
    const float value = round_to_float(exact, in.rounding);
    store_raw(warp, in.d, 4, lane, std::bit_cast<std::uint32_t>(in.saturate ? saturate_unit(value) : value));
  }
}

bool decode_mixed(Decoder& decoder, const HalfRow& row, Type narrow_type) {
  if (row.op != HalfOp::kAdd && row.op != HalfOp::kSub && row.op != HalfOp::kFma) return false;
  Instruction& out = decoder.out;
  decoder.suffixes.take_type();
  decoder.suffixes.take_type();
  out.rounding = decoder.suffixes.take_rounding().value_or(Rounding::kNearestEven);
  out.saturate = decoder.suffixes.take("sat");
  out.kind = InstructionClass::kFloat32;
  out.handler = mixed;
  out.from = narrow_type;
  out.immediate = static_cast<std::int64_t>(row.op);
  decoder.expect_operands(row.sources + 1, row.sources + 1);
  out.d = decoder.destination(decoder.operand(0), 4);
  out.a = decoder.source(decoder.operand(1), narrow_type);
  out.b = decoder.source(decoder.operand(2), row.sources == 3 ? narrow_type : Type::kF32);
  if (row.sources == 3) out.c = decoder.source(decoder.operand(3), Type::kF32);
  return true;
}

}  // namespace

bool decode_half(Decoder& decoder) {
  const HalfRow* row = nullptr;
  for (const HalfRow& candidate : kHalfRows) {
    if (candidate.name == decoder.base()) row = &candidate;
  }
  const std::vector<std::string>& words = decoder.ptx().suffixes;
  if (row == nullptr || words.empty()) return false;
  const std::optional<Type> type = parse_type(words.back());
  if (!type) return false;
  const bool half = *type == Type::kF16 || *type == Type::kF16x2,
             brain = *type == Type::kBF16 || *type == Type::kBF16x2;
  if (!half && !brain) return false;
  if (words.size() > 1 && words[words.size() - 2] == "f32") return decode_mixed(decoder, *row, *type);
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  suffixes.take_type();
  suffixes.take("rn");
  suffixes.take("approx");
  suffixes.take("noftz");
  out.flush = suffixes.take("ftz");
  out.saturate = suffixes.take("sat");
  if (suffixes.take("NaN")) out.mode |= kPropagate;
  if (suffixes.take("xorsign")) out.mode |= kXorSign;
  if (suffixes.take("abs")) out.mode |= kAbsolute;
  if (suffixes.take("relu")) out.mode |= kHalfRelu;
  const bool pair = *type == Type::kF16x2 || *type == Type::kBF16x2;
  out.kind = InstructionClass::kHalf;
  out.immediate = static_cast<std::int64_t>(row->op);
  out.handler = brain ? (pair ? half_arithmetic<true, true> : half_arithmetic<true, false>)
                      : (pair ? half_arithmetic<false, true> : half_arithmetic<false, false>);
  decoder.expect_operands(row->sources + 1, row->sources + 1);
  out.d = decoder.destination(decoder.operand(0), bytes(*type));
  out.a = decoder.source(decoder.operand(1), *type);
  if (row->sources > 1) out.b = decoder.source(decoder.operand(2), *type);
  if (row->sources > 2) out.c = decoder.source(decoder.operand(3), *type);
  return true;
}

}  // namespace fusec::emulator
