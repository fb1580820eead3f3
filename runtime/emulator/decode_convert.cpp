// cvt: between integers, float64, float32, tf32, float16, bfloat16 and the packed fp8, fp6, fp4 and e8m0 pairs.
#include <algorithm>
#include <cmath>

#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"

namespace fusec::emulator {
namespace {

constexpr std::uint16_t kConvertRelu = 1, kSatFinite = 2, kIntegral = 4;

const FloatFormat& format_of(Type type) {
  switch (type) {
    case Type::kF16:
    case Type::kF16x2:
      return kHalf;
    case Type::kBF16:
    case Type::kBF16x2:
      return kBFloat;
    case Type::kTF32:
      return kTensor32;
    case Type::kE4M3:
    case Type::kE4M3x2:
      return kE4M3Format;
    case Type::kE5M2:
    case Type::kE5M2x2:
      return kE5M2Format;
    case Type::kE2M1x2:
      return kE2M1Format;
    case Type::kE2M3x2:
      return kE2M3Format;
    case Type::kE3M2x2:
      return kE3M2Format;
    default:
      return kSingle;
  }
}

double read_float(Type type, std::uint64_t bits) {
  switch (type) {
    case Type::kF64:
      return std::bit_cast<double>(bits);
    case Type::kF32:
    case Type::kTF32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case Type::kF16:
      return half_to_float(static_cast<std::uint16_t>(bits));
    case Type::kBF16:
      return bfloat_to_float(static_cast<std::uint16_t>(bits));
    case Type::kUE8M0x2:
      return decode_ue8m0(static_cast<std::uint8_t>(bits));
    default:
      return decode_float(static_cast<std::uint32_t>(bits), format_of(type));
  }
}

// The bits of `value` in a scalar float type.
std::uint64_t write_float(const Instruction& in, Type type, double value) {
  const bool satfinite = (in.mode & kSatFinite) != 0;
  if ((in.mode & kConvertRelu) != 0 && value == value && (value < 0 || std::signbit(value))) value = 0;
  switch (type) {
    case Type::kF64:
      return std::bit_cast<std::uint64_t>(value);
    case Type::kF32:
      return std::bit_cast<std::uint32_t>(round_to_float(value, in.rounding));
    // tf32 has 10 mantissa bits, the upper ones of float32's 23.
    case Type::kTF32:
      if (value != value) return 0x7fffffffu;
      return static_cast<std::uint64_t>(encode_float(value, kTensor32, in.rounding, satfinite)) << 13;
    case Type::kUE8M0x2:
      return encode_ue8m0(value, in.rounding, satfinite);
    default:
      return encode_float(value, format_of(type), in.rounding, satfinite);
  }
}

// ---- scalar

std::uint64_t sign_extended(std::uint64_t value, int bits) {
  return bits >= 64 ? value
                    : static_cast<std::uint64_t>(static_cast<std::int64_t>(value << (64 - bits)) >> (64 - bits));
}
std::uint64_t zero_extended(std::uint64_t value, int bits) {
  return bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

struct Integer {  // sign and magnitude, which hold every source type
  bool negative;
  std::uint64_t magnitude;
};
Integer read_integer(Type type, std::uint64_t raw) {
  if (!is_signed(type)) return {false, zero_extended(raw, bits(type))};
  const std::uint64_t value = sign_extended(raw, bits(type));
  const bool negative = static_cast<std::int64_t>(value) < 0;
  return {negative, negative ? 0 - value : value};
}

std::uint64_t clamp_integer(Type type, const Integer& value) {
  const int width = bits(type);
  if (!is_signed(type)) {
    const std::uint64_t most = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
    return value.negative ? 0 : std::min(value.magnitude, most);
  }
  const std::uint64_t most = (std::uint64_t{1} << (width - 1)) - 1;
  if (!value.negative) return std::min(value.magnitude, most);
  return 0 - std::min(value.magnitude, most + 1);
}

// Values beyond the integer type's range give its nearest bound.
std::uint64_t float_to_integer(Type to, Type from, double value, Rounding rounding) {
  if (value != value) {
    const bool wide = from == Type::kF64 || bits(to) == 64;
    return wide ? std::uint64_t{1} << (bits(to) - 1) : 0;
  }
  const double whole = round_integral(value, rounding);
  const double size = std::fabs(whole);
  const std::uint64_t magnitude = size >= 0x1p64 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(size);
  return clamp_integer(to, {whole < 0, magnitude});
}

std::uint64_t convert_one(const Instruction& in, std::uint64_t raw) {
  const Type to = in.type, from = in.from;
  if (!is_float(from)) {
    const Integer value = read_integer(from, raw);
    if (!is_float(to)) {
      if (in.saturate) return clamp_integer(to, value);
      return value.negative ? 0 - value.magnitude : value.magnitude;
    }
    if (to == Type::kF64)
      return std::bit_cast<std::uint64_t>(integer_to_double(value.magnitude, value.negative, in.rounding));
    if (to == Type::kF32)
      return std::bit_cast<std::uint32_t>(integer_to_float(value.magnitude, value.negative, in.rounding));
    // Round to odd first, so that only the second rounding counts.
    const double whole = integer_to_double(value.magnitude, value.negative, Rounding::kZero);
    const bool inexact = static_cast<std::uint64_t>(std::fabs(whole)) != value.magnitude;
    return write_float(in, to, to_odd(whole, inexact ? (value.negative ? -1.0 : 1.0) : 0.0));
  }
  double value = read_float(from, raw);
  if (in.flush && from == Type::kF32) value = flush(static_cast<float>(value));
  if (!is_float(to)) return float_to_integer(to, from, value, in.rounding);
  if ((in.mode & kIntegral) != 0) value = round_integral(value, in.rounding);
  if (in.saturate) value = saturate_unit(value);
  std::uint64_t result = write_float(in, to, value);
  if (in.flush && to == Type::kF32)
    result = std::bit_cast<std::uint32_t>(flush(std::bit_cast<float>(static_cast<std::uint32_t>(result))));
  return result;
}

void convert(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const bool sign = is_signed(in.type) && !is_float(in.type);
  const int from_bits = bits(in.from), to_bits = bits(in.type);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const std::uint64_t raw = zero_extended(load_raw(warp, in.a, in.a_width, lane), from_bits);
    const std::uint64_t result = convert_one(in, raw);
    store_raw(warp, in.d, in.d_width, lane, sign ? sign_extended(result, to_bits) : zero_extended(result, to_bits));
  }
}

// ---- the common ones, as plain loops over registers of exactly the types' widths

template <class R, class A>
void convert_plain(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  map_lanes<R, A>(warp, in, lanes, [](A a) { return static_cast<R>(a); });
}
void half_to_single(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  map_lanes<float, std::uint16_t>(warp, in, lanes, [](std::uint16_t a) { return half_to_float(a); });
}
void single_to_half(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  map_lanes<std::uint16_t, float>(warp, in, lanes, [](float a) { return float_to_half(a); });
}
void bfloat_to_single(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  map_lanes<float, std::uint16_t>(warp, in, lanes, [](std::uint16_t a) { return canonical(bfloat_to_float(a)); });
}
void single_to_bfloat(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  map_lanes<std::uint16_t, float>(warp, in, lanes, [](float a) { return float_to_bfloat(a); });
}

struct QuickRow {
  Type to, from;
  Handler handler;
};
constexpr QuickRow kQuick[] = {
    {Type::kF32, Type::kF16, half_to_single},
    {Type::kF16, Type::kF32, single_to_half},
    {Type::kF32, Type::kBF16, bfloat_to_single},
    {Type::kBF16, Type::kF32, single_to_bfloat},
    {Type::kF32, Type::kS32, convert_plain<float, std::int32_t>},
    {Type::kF32, Type::kU32, convert_plain<float, std::uint32_t>},
    {Type::kS64, Type::kS32, convert_plain<std::int64_t, std::int32_t>},
    {Type::kU64, Type::kU32, convert_plain<std::uint64_t, std::uint32_t>},
    {Type::kU32, Type::kU64, convert_plain<std::uint32_t, std::uint64_t>},
    {Type::kS32, Type::kS64, convert_plain<std::int32_t, std::int64_t>},
    {Type::kU32, Type::kU16, convert_plain<std::uint32_t, std::uint16_t>},
    {Type::kS32, Type::kS16, convert_plain<std::int32_t, std::int16_t>},
    {Type::kU16, Type::kU32, convert_plain<std::uint16_t, std::uint32_t>},
};

// ---- packed

// d = {first source in the upper half, second in the lower}; or a packed source, element by element.
void convert_pair(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const int to_bits = bits(in.type) / 2, from_bits = bits(in.from) / (in.option ? 2 : 1);
  const Type to = in.type == Type::kF16x2 ? Type::kF16 : in.type == Type::kBF16x2 ? Type::kBF16 : in.type;
  const Type from = in.from == Type::kF16x2 ? Type::kF16 : in.from == Type::kBF16x2 ? Type::kBF16 : in.from;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    std::uint64_t result = 0;
    for (int half = 0; half < 2; ++half) {
      std::uint64_t raw;
      if (in.option)
        raw = zero_extended(load_raw(warp, in.a, in.a_width, lane) >> (half * from_bits), from_bits);
      else
        raw = half == 0 ? load_raw(warp, in.b, in.b_width, lane) : load_raw(warp, in.a, in.a_width, lane);
      double value = read_float(from, zero_extended(raw, from_bits));
      if (in.flush) value = flush(static_cast<float>(value));
      result |= zero_extended(write_float(in, to, value), to_bits) << (half * to_bits);
    }
    store_raw(warp, in.d, in.d_width, lane, result);
  }
}

// cvt.pack.sat.t.s32.b32 d, a, b, c: a and b saturated to t at the bottom, c moved up.
void convert_pack(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const int width = bits(in.type);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const auto part = [&](Slot slot) {
      return zero_extended(clamp_integer(in.type, read_integer(Type::kS32, load_raw(warp, slot, 4, lane))), width);
    };
    std::uint64_t result = part(in.b) | (part(in.a) << width);
    if (in.c != kNoSlot && width < 16) result |= load_raw(warp, in.c, 4, lane) << (2 * width);
    store_raw(warp, in.d, 4, lane, result & 0xffffffffu);
  }
}

bool is_pair(Type type) {
  return type == Type::kF16x2 || type == Type::kBF16x2 || type >= Type::kE4M3x2;
}

void decode_pack(Decoder& decoder) {
  Instruction& out = decoder.out;
  if (!decoder.suffixes.take("sat")) decoder.unknown();
  out.type = decoder.suffixes.take_type();
  if (decoder.suffixes.take_type() != Type::kS32) decoder.unknown();
  const bool three = decoder.suffixes.take_type() == Type::kB32;
  const int width = bits(out.type);
  if (!is_integer(out.type) || (width != 16 && width != 8)) decoder.unknown();
  decoder.expect_operands(three ? 4 : 3, three ? 4 : 3);
  out.handler = convert_pack;
  out.d = decoder.destination(decoder.operand(0), 4);
  out.a = decoder.source(decoder.operand(1), Type::kS32);
  out.b = decoder.source(decoder.operand(2), Type::kS32);
  if (three) out.c = decoder.source(decoder.operand(3), Type::kB32);
}

void decode_pair(Decoder& decoder) {
  Instruction& out = decoder.out;
  out.handler = convert_pair;
  out.option = is_pair(out.from);
  const std::size_t sources = out.option ? 1 : 2;
  if (!out.option && out.from != Type::kF32) decoder.unknown();
  if (out.option && !is_pair(out.type)) decoder.unknown();
  decoder.expect_operands(sources + 1, sources + 1);
  // e2m1x2 has 8 bits: in a .b8 register, or in the low bits of a wider one.
  out.d = decoder.destination(decoder.operand(0), bytes(out.type), out.d_width);
  out.a = decoder.source_any(decoder.operand(1), out.from, out.a_width);
  if (!out.option) out.b = decoder.source_any(decoder.operand(2), out.from, out.b_width);
}

bool convertible(Type type) {
  return is_integer(type) || type == Type::kF16 || type == Type::kBF16 || type == Type::kF32 || type == Type::kF64 ||
         type == Type::kTF32;
}

Handler quick_handler(const Instruction& in) {
  if (in.mode != 0 || in.flush || in.saturate || in.rounding != Rounding::kNearestEven) return nullptr;
  for (const QuickRow& row : kQuick) {
    if (row.to == in.type && row.from == in.from && bytes(row.to) == in.d_width && bytes(row.from) == in.a_width) {
      return row.handler;
    }
  }
  return nullptr;
}

}  // namespace

bool decode_convert(Decoder& decoder) {
  if (decoder.base() != "cvt") return false;
  Suffixes& suffixes = decoder.suffixes;
  Instruction& out = decoder.out;
  out.kind = InstructionClass::kConvert;
  if (suffixes.take("pack")) {
    decode_pack(decoder);
    return true;
  }
  const std::optional<Rounding> integral = suffixes.take_integral_rounding();
  const std::optional<Rounding> rounding = suffixes.take_rounding();
  out.rounding = integral ? *integral : rounding.value_or(Rounding::kNearestEven);
  out.flush = suffixes.take("ftz");
  out.saturate = suffixes.take("sat");
  if (suffixes.take("relu")) out.mode |= kConvertRelu;
  if (suffixes.take("satfinite")) out.mode |= kSatFinite;
  out.type = suffixes.take_type();
  out.from = suffixes.take_type();
  if (is_pair(out.type) || is_pair(out.from)) {
    decode_pair(decoder);
    return true;
  }
  if (!convertible(out.type) || !convertible(out.from)) decoder.unknown();
  // Without a rounding suffix, float to integer rounds towards zero.
  if (is_float(out.from) && !is_float(out.type) && !integral) out.rounding = Rounding::kZero;
  if (integral && is_float(out.type)) {
    if (!is_float(out.from)) decoder.unknown();
    out.mode |= kIntegral;
  }
  decoder.expect_operands(2, 2);
  out.handler = convert;
  out.d = decoder.destination(decoder.operand(0), bytes(out.type), out.d_width);
  out.a = decoder.source_any(decoder.operand(1), out.from, out.a_width);
  if (Handler quick = quick_handler(out)) out.handler = quick;
  return true;
}

}  // namespace fusec::emulator
