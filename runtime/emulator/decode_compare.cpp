// setp set selp slct, for integers, float32, float64, float16 and bfloat16, with the combining and, or, xor.
#include <cmath>

#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"

namespace fusec::emulator {
namespace {

enum class Compare : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kEqu, kNeu, kLtu, kLeu, kGtu, kGeu, kNum, kNan };
enum class Combine : std::uint8_t { kNone, kAnd, kOr, kXor };

constexpr std::string_view kCompareNames[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                              "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

template <class T, class F>
std::uint32_t lane_mask(const Lanes<T>& a, const Lanes<T>& b, F holds) {
  std::uint8_t results[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) results[lane] = holds(a.at[lane], b.at[lane]);
  std::uint32_t mask = 0;
  for (int lane = 0; lane < kLanes; ++lane) mask |= static_cast<std::uint32_t>(results[lane]) << lane;
  return mask;
}

template <class T>
std::uint32_t compare(Compare compare, const Lanes<T>& a, const Lanes<T>& b) {
  // Only floats can be unordered; for integers the unordered forms equal the ordered ones.
  switch (compare) {
    case Compare::kEq:
      return lane_mask(a, b, [](T x, T y) { return x == y; });
    case Compare::kNe:
      return lane_mask(a, b, [](T x, T y) { return x < y || x > y; });
    case Compare::kLt:
      return lane_mask(a, b, [](T x, T y) { return x < y; });
    case Compare::kLe:
      return lane_mask(a, b, [](T x, T y) { return x <= y; });
    case Compare::kGt:
      return lane_mask(a, b, [](T x, T y) { return x > y; });
    case Compare::kGe:
      return lane_mask(a, b, [](T x, T y) { return x >= y; });
    case Compare::kEqu:
      return lane_mask(a, b, [](T x, T y) { return !(x < y || x > y); });
    case Compare::kNeu:
      return lane_mask(a, b, [](T x, T y) { return !(x == y); });
    case Compare::kLtu:
      return lane_mask(a, b, [](T x, T y) { return !(x >= y); });
    case Compare::kLeu:
      return lane_mask(a, b, [](T x, T y) { return !(x > y); });
    case Compare::kGtu:
      return lane_mask(a, b, [](T x, T y) { return !(x <= y); });
    case Compare::kGeu:
      return lane_mask(a, b, [](T x, T y) { return !(x < y); });
    case Compare::kNum:
      return lane_mask(a, b, [](T x, T y) { return x == x && y == y; });
    case Compare::kNan:
      return lane_mask(a, b, [](T x, T y) { return x != x || y != y; });
  }
  return 0;
}

Lanes<float> load_half(const Warp& warp, Slot slot, int width, int half, bool brain, bool flushed) {
  Lanes<float> value;
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto raw = static_cast<std::uint16_t>(load_raw(warp, slot, width, lane) >> (16 * half));
    value.at[lane] = brain ? bfloat_to_float(raw) : half_to_float(raw);
    if (flushed && !brain && std::fabs(value.at[lane]) < 0x1p-14f) value.at[lane] = std::copysign(0.0f, value.at[lane]);
  }
  return value;
}

Lanes<float> load_single(const Warp& warp, Slot slot, bool flushed) {
  Lanes<float> value = load_lanes<float>(warp, slot);
  if (flushed) {
    for (float& lane : value.at) lane = flush(lane);
  }
  return value;
}

template <class T>
std::uint32_t compare_lanes(const Warp& warp, const Instruction& in, Compare how) {
  return compare<T>(how, load_lanes<T>(warp, in.a), load_lanes<T>(warp, in.b));
}

// The mask of lanes for which the comparison holds; `half` selects one of a packed pair.
std::uint32_t outcome(const Warp& warp, const Instruction& in, int half) {
  const auto how = static_cast<Compare>(in.mode & 0xff);
  switch (in.from) {
    case Type::kB16:
    case Type::kU16:
      return compare_lanes<std::uint16_t>(warp, in, how);
    case Type::kS16:
      return compare_lanes<std::int16_t>(warp, in, how);
    case Type::kB32:
    case Type::kU32:
      return compare_lanes<std::uint32_t>(warp, in, how);
    case Type::kS32:
      return compare_lanes<std::int32_t>(warp, in, how);
    case Type::kB64:
    case Type::kU64:
      return compare_lanes<std::uint64_t>(warp, in, how);
    case Type::kS64:
      return compare_lanes<std::int64_t>(warp, in, how);
    case Type::kF64:
      return compare_lanes<double>(warp, in, how);
    case Type::kF32:
      return compare<float>(how, load_single(warp, in.a, in.flush), load_single(warp, in.b, in.flush));
    default: {
      const bool brain = in.from == Type::kBF16 || in.from == Type::kBF16x2;
      const int width = bytes(in.from);
      return compare<float>(how, load_half(warp, in.a, width, half, brain, in.flush),
                            load_half(warp, in.b, width, half, brain, in.flush));
    }
  }
}

std::uint32_t combine(const Warp& warp, const Instruction& in, std::uint32_t result) {
  if (in.c == kNoSlot) return result;
  const std::uint32_t c = load_predicate(warp, in.c);
  switch (static_cast<Combine>(in.mode >> 8)) {
    case Combine::kAnd:
      return result & c;
    case Combine::kOr:
      return result | c;
    case Combine::kXor:
      return result ^ c;
    case Combine::kNone:
      break;
  }
  return result;
}

void set_predicate(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const std::uint32_t result = outcome(warp, in, 0);
  // p = result op c; q = !result op c. For a packed pair, q is the result of the upper half.
  const std::uint32_t other = in.option ? outcome(warp, in, 1) : ~result;
  const std::uint32_t p = combine(warp, in, result), q = combine(warp, in, other);
  store_predicate(warp, in.d, p, lanes);
  if (in.e != kNoSlot) store_predicate(warp, in.e, q, lanes);
}

void set_value(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const std::uint32_t low = combine(warp, in, outcome(warp, in, 0));
  const bool pair = in.from == Type::kF16x2 || in.from == Type::kBF16x2;
  const std::uint32_t high = pair ? combine(warp, in, outcome(warp, in, 1)) : 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    std::uint64_t value = 0;
    const bool yes = (low >> lane & 1) != 0, yes_high = (high >> lane & 1) != 0;
    switch (in.type) {
      case Type::kF32:
        value = yes ? 0x3f800000u : 0;
        break;
      case Type::kF16:
        value = yes ? 0x3c00u : 0;
        break;
      case Type::kBF16:
        value = yes ? 0x3f80u : 0;
        break;
      case Type::kF16x2:
        value = (yes ? 0x3c00u : 0) | (yes_high ? 0x3c000000u : 0);
        break;
      case Type::kBF16x2:
        value = (yes ? 0x3f80u : 0) | (yes_high ? 0x3f800000u : 0);
        break;
      default:
        value = yes ? ~std::uint64_t{0} : 0;
        break;
    }
    if (pair && !is_float(in.type)) value = (yes ? 0xffffu : 0) | (yes_high ? 0xffff0000u : 0);
    store_raw(warp, in.d, in.d_width, lane, value);
  }
}

template <class T>
void select(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const Lanes<T> a = load_lanes<T>(warp, in.a), b = load_lanes<T>(warp, in.b);
  const std::uint32_t c = load_predicate(warp, in.c);
  Lanes<T> result;
  for (int lane = 0; lane < kLanes; ++lane) result.at[lane] = (c >> lane & 1) != 0 ? a.at[lane] : b.at[lane];
  store_lanes(warp, in.d, result, lanes);
}

template <class T>
void select_by_sign(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  if (in.from == Type::kS32) {
    map_lanes<T, T, T, std::int32_t>(warp, in, lanes, [](T a, T b, std::int32_t c) { return c >= 0 ? a : b; });
    return;
  }
  const bool flushed = in.flush;  // -0 counts as not negative, NaN as negative
  map_lanes<T, T, T, float>(warp, in, lanes,
                            [flushed](T a, T b, float c) { return (flushed ? flush(c) : c) >= 0 ? a : b; });
}

bool comparable(Type type) {
  return (is_integer(type) && bits(type) >= 16) || type == Type::kF32 || type == Type::kF64 || type == Type::kF16 ||
         type == Type::kBF16 || type == Type::kF16x2 || type == Type::kBF16x2;
}

// Takes the comparison's name from the suffixes; unsigned integers also have lo ls hi hs.
Compare take_comparison(Decoder& decoder) {
  constexpr std::pair<std::string_view, Compare> kUnsigned[] = {
      {"lo", Compare::kLt}, {"ls", Compare::kLe}, {"hi", Compare::kGt}, {"hs", Compare::kGe}};
  for (const auto& [word, how] : kUnsigned) {
    if (decoder.suffixes.take(word)) return how;
  }
  for (std::size_t i = 0; i < std::size(kCompareNames); ++i) {
    if (decoder.suffixes.take(kCompareNames[i])) return static_cast<Compare>(i);
  }
  decoder.unknown();
}

Combine take_combination(Decoder& decoder) {
  if (decoder.suffixes.take("and")) return Combine::kAnd;
  if (decoder.suffixes.take("or")) return Combine::kOr;
  if (decoder.suffixes.take("xor")) return Combine::kXor;
  return Combine::kNone;
}

void decode_set(Decoder& decoder, bool to_predicate) {
  Instruction& out = decoder.out;
  const Compare how = take_comparison(decoder);
  const Combine combination = take_combination(decoder);
  out.flush = decoder.suffixes.take("ftz");
  if (!to_predicate) out.type = decoder.suffixes.take_type();
  out.from = decoder.suffixes.take_type();
  if (!comparable(out.from)) decoder.unknown();
  if (how >= Compare::kEqu && !is_float(out.from)) decoder.unknown();
  out.mode = static_cast<std::uint16_t>(static_cast<unsigned>(how) | (static_cast<unsigned>(combination) << 8));
  const std::size_t wanted = combination == Combine::kNone ? 3 : 4;
  decoder.expect_operands(wanted, wanted);
  out.a = decoder.source(decoder.operand(1), out.from);
  out.b = decoder.source(decoder.operand(2), out.from);
  if (wanted == 4) out.c = decoder.predicate_source(decoder.operand(3));
  const PtxOperand& destination = decoder.operand(0);
  if (!to_predicate) {
    if (out.type == Type::kNone) decoder.unknown();
    out.handler = set_value;
    out.d_width = static_cast<std::uint8_t>(bytes(out.type));
    out.d = decoder.destination(destination, bytes(out.type));
    return;
  }
  out.handler = set_predicate;
  out.option = out.from == Type::kF16x2 || out.from == Type::kBF16x2;
  if (destination.kind == PtxOperand::Kind::kPair) {
    out.d = decoder.predicate_destination(destination.parts[0]);
    out.e = decoder.predicate_destination(destination.parts[1]);
  } else {
    out.d = decoder.predicate_destination(destination);
  }
}

void decode_select(Decoder& decoder) {
  Instruction& out = decoder.out;
  const Type type = decoder.suffixes.take_type();
  decoder.expect_operands(4, 4);
  const int width = bytes(type);
  out.handler = width == 2   ? select<std::uint16_t>
                : width == 4 ? select<std::uint32_t>
                : width == 8 ? select<std::uint64_t>
                             : nullptr;
  if (out.handler == nullptr) decoder.unknown();
  out.d = decoder.destination(decoder.operand(0), width);
  out.a = decoder.source(decoder.operand(1), type);
  out.b = decoder.source(decoder.operand(2), type);
  out.c = decoder.predicate_source(decoder.operand(3));
}

void decode_slct(Decoder& decoder) {
  Instruction& out = decoder.out;
  out.flush = decoder.suffixes.take("ftz");
  const Type type = decoder.suffixes.take_type();
  out.from = decoder.suffixes.take_type();
  if (out.from != Type::kS32 && out.from != Type::kF32) decoder.unknown();
  decoder.expect_operands(4, 4);
  const int width = bytes(type);
  out.handler = width == 2   ? select_by_sign<std::uint16_t>
                : width == 4 ? select_by_sign<std::uint32_t>
                : width == 8 ? select_by_sign<std::uint64_t>
                             : nullptr;
  if (out.handler == nullptr) decoder.unknown();
  out.d = decoder.destination(decoder.operand(0), width);
  out.a = decoder.source(decoder.operand(1), type);
  out.b = decoder.source(decoder.operand(2), type);
  out.c = decoder.source(decoder.operand(3), out.from);
}

}  // namespace

bool decode_compare(Decoder& decoder) {
  const std::string_view base = decoder.base();
  decoder.out.kind = InstructionClass::kInteger;
  if (base == "setp" || base == "set")
    decode_set(decoder, base == "setp");
  else if (base == "selp")
    decode_select(decoder);
  else if (base == "slct")
    decode_slct(decoder);
  else
    return false;
  if (decoder.out.from == Type::kF32) decoder.out.kind = InstructionClass::kFloat32;
  if (decoder.out.from == Type::kF64) decoder.out.kind = InstructionClass::kFloat64;
  return true;
}

}  // namespace fusec::emulator
