// float32 and float64 instructions that use only sign, order or class: min max abs neg copysign testp.
#include <bit>
#include <cmath>

#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"

namespace fusec::emulator {
namespace {

template <class T>
T smaller(T a, T b) {
  if (a == b) return std::signbit(a) ? a : b;  // -0 is less than +0
  return a < b ? a : b;
}
template <class T>
T larger(T a, T b) {
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <class T>
T canonical_nan() {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(std::uint32_t{0x7fffffff});
  else
    return std::bit_cast<double>(std::uint64_t{0x7fffffffffffffff});
}

template <class T>
T select_extreme(const Instruction& in, bool wants_max, T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    if (in.flush) a = flush(a), b = flush(b);
  }
  const bool propagates = (in.mode & 1) != 0, xorsign = (in.mode & 2) != 0, absolute = (in.mode & 4) != 0;
  const bool sign = std::signbit(a) != std::signbit(b);
  if (absolute || xorsign) a = std::fabs(a), b = std::fabs(b);
  T value;
  if (a != a || b != b) {
    const bool both = a != a && b != b;
    value = both || propagates ? canonical_nan<T>() : a != a ? b : a;
  } else {
    value = wants_max ? larger(a, b) : smaller(a, b);
  }
  if (xorsign && value == value) value = std::copysign(value, sign ? T(-1) : T(1));
  return value;
}

template <class T>
void extreme(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const bool wants_max = in.option;
  if (in.c != kNoSlot) {
    map_lanes<T, T, T, T>(warp, in, lanes, [&in, wants_max](T a, T b, T c) {
      return select_extreme(in, wants_max, select_extreme(in, wants_max, a, b), c);
    });
    return;
  }
  map_lanes<T, T, T>(warp, in, lanes, [&in, wants_max](T a, T b) { return select_extreme(in, wants_max, a, b); });
}

template <bool kNegate>
void sign_single(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const bool flushed = in.flush;
  map_lanes<std::uint32_t, std::uint32_t>(warp, in, lanes, [flushed](std::uint32_t a) {
    if (flushed && (a & 0x7f800000u) == 0) a &= 0x80000000u;
    return kNegate ? a ^ 0x80000000u : a & 0x7fffffffu;
  });
}
template <bool kNegate>
void sign_double(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  map_lanes<std::uint64_t, std::uint64_t>(
      warp, in, lanes, [](std::uint64_t a) { return kNegate ? a ^ (std::uint64_t{1} << 63) : a & ~kSign; });
}

template <class T>
void copy_sign(Warp& warp, const Instruction& in, std::uint32_t lanes) {  // the sign of a, the magnitude of b
  map_lanes<T, T, T>(warp, in, lanes, [](T a, T b) { return std::copysign(b, a); });
}

// testp
void test_property(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  std::uint32_t result = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    int kind;
    const std::uint64_t bits = load_raw(warp, in.a, in.a_width, lane);
    if (in.a_width == 4)
      kind = std::fpclassify(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    else
      kind = std::fpclassify(std::bit_cast<double>(bits));
    bool holds = false;
    switch (in.mode) {
      case 0:
        holds = kind == FP_NORMAL || kind == FP_SUBNORMAL || kind == FP_ZERO;
        break;  // finite
      case 1:
        holds = kind == FP_INFINITE;
        break;
      case 2:
        holds = kind != FP_NAN;
        break;  // number
      case 3:
        holds = kind == FP_NAN;
        break;
      case 4:
        holds = kind == FP_NORMAL;
        break;
      default:
        holds = kind == FP_SUBNORMAL;
        break;
    }
    result |= static_cast<std::uint32_t>(holds) << lane;
  }
  store_predicate(warp, in.d, result, lanes);
}

void choose_handler(Decoder& decoder, Type type) {
  const std::string_view base = decoder.base();
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  const bool wide = type == Type::kF64;
  out.flush = suffixes.take("ftz");
  if (base == "min" || base == "max") {
    const bool nan = suffixes.take("NaN"), xorsign = suffixes.take("xorsign"), absolute = suffixes.take("abs");
    out.mode = static_cast<std::uint16_t>((nan ? 1 : 0) | (xorsign ? 2 : 0) | (absolute ? 4 : 0));
    out.option = base == "max";
    out.handler = wide ? extreme<double> : extreme<float>;
  } else if (base == "abs") {
    out.handler = wide ? sign_double<false> : sign_single<false>;
  } else if (base == "neg") {
    out.handler = wide ? sign_double<true> : sign_single<true>;
  } else {
    out.handler = wide ? copy_sign<double> : copy_sign<float>;
  }
}

bool decode_testp(Decoder& decoder) {
  if (decoder.base() != "testp") return false;
  Instruction& out = decoder.out;
  constexpr std::string_view kProperties[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  bool found = false;
  for (std::uint16_t i = 0; i < 6; ++i) {
    if (!decoder.suffixes.take(kProperties[i])) continue;
    out.mode = i;
    found = true;
  }
  const Type type = decoder.suffixes.take_type();
  if (!found || (type != Type::kF32 && type != Type::kF64)) decoder.unknown();
  decoder.expect_operands(2, 2);
  out.kind = InstructionClass::kFloat32;
  out.handler = test_property;
  out.d = decoder.predicate_destination(decoder.operand(0));
  out.a = decoder.source(decoder.operand(1), type);
  out.a_width = static_cast<std::uint8_t>(bytes(type));
  return true;
}

}  // namespace

bool decode_float_order(Decoder& decoder) {
  if (decode_testp(decoder)) return true;
  const std::string_view base = decoder.base();
  const bool extreme = base == "min" || base == "max", single = base == "abs" || base == "neg";
  const std::vector<std::string>& words = decoder.ptx().suffixes;
  if ((!extreme && !single && base != "copysign") || words.empty()) return false;
  const std::optional<Type> type = parse_type(words.back());
  if (!type || (*type != Type::kF32 && *type != Type::kF64)) return false;
  decoder.suffixes.take_type();
  Instruction& out = decoder.out;
  out.kind = *type == Type::kF64 ? InstructionClass::kFloat64 : InstructionClass::kFloat32;
  choose_handler(decoder, *type);
  const std::size_t sources = single ? 1 : extreme && decoder.operands() == 4 ? 3 : 2;
  decoder.expect_operands(sources + 1, sources + 1);
  out.d = decoder.destination(decoder.operand(0), bytes(*type));
  out.a = decoder.source(decoder.operand(1), *type);
  if (sources > 1) out.b = decoder.source(decoder.operand(2), *type);
  if (sources > 2) out.c = decoder.source(decoder.operand(3), *type);
  return true;
}

}  // namespace fusec::emulator
