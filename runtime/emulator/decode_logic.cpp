// Bit instructions: and or xor not cnot, shifts, lop3, prmt, shf, bfe bfi bmsk, popc clz bfind brev, fns, szext.
#include <algorithm>
#include <bit>

#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"

namespace fusec::emulator {
namespace {

template <class T>
struct And {
  static T apply(T a, T b) { return static_cast<T>(a & b); }
};
template <class T>
struct Or {
  static T apply(T a, T b) { return static_cast<T>(a | b); }
};
template <class T>
struct Xor {
  static T apply(T a, T b) { return static_cast<T>(a ^ b); }
};
template <class T>
struct Not {
  static T apply(T a) { return static_cast<T>(~a); }
};
template <class T>
struct Cnot {
  static T apply(T a) { return a == 0 ? 1 : 0; }
};

// Shift counts beyond the width are clamped to it.
template <class T>
struct Shl {
  static T apply(T a, std::uint32_t by) { return by >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << by); }
};
template <class T>
struct Shr {
  static T apply(T a, std::uint32_t by) {
    const std::uint32_t most = 8 * sizeof(T);
    if (by >= most) return std::is_signed_v<T> && a < 0 ? static_cast<T>(-1) : T{0};
    return static_cast<T>(a >> by);
  }
};

template <template <class> class Op, class T>
void shift(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  map_lanes<T, T, std::uint32_t>(warp, in, lanes, [](T a, std::uint32_t b) { return Op<T>::apply(a, b); });
}

template <template <class> class Op>
Handler bitwise(int width) {
  return width == 2   ? binary<Op, std::uint16_t>
         : width == 4 ? binary<Op, std::uint32_t>
         : width == 8 ? binary<Op, std::uint64_t>
                      : nullptr;
}
template <template <class> class Op>
Handler bitwise_unary(int width) {
  return width == 2   ? unary<Op, std::uint16_t>
         : width == 4 ? unary<Op, std::uint32_t>
         : width == 8 ? unary<Op, std::uint64_t>
                      : nullptr;
}

enum class PredicateLogic : std::uint16_t { kAnd, kOr, kXor, kNot };
void predicate_logic(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const std::uint32_t a = load_predicate(warp, in.a);
  const std::uint32_t b = in.b == kNoSlot ? 0 : load_predicate(warp, in.b);
  std::uint32_t result = 0;
  switch (static_cast<PredicateLogic>(in.mode)) {
    case PredicateLogic::kAnd:
      result = a & b;
      break;
    case PredicateLogic::kOr:
      result = a | b;
      break;
    case PredicateLogic::kXor:
      result = a ^ b;
      break;
    case PredicateLogic::kNot:
      result = ~a;
      break;
  }
  store_predicate(warp, in.d, result, lanes);
}

bool decode_bitwise(Decoder& decoder) {
  const std::string_view base = decoder.base();
  const bool one = base == "not" || base == "cnot";
  if (!one && base != "and" && base != "or" && base != "xor") return false;
  Instruction& out = decoder.out;
  const Type type = decoder.suffixes.take_type();
  decoder.expect_operands(one ? 2 : 3, one ? 2 : 3);
  out.kind = InstructionClass::kInteger;
  if (type == Type::kPred && base != "cnot") {
    out.handler = predicate_logic;
    out.mode = static_cast<std::uint16_t>(base == "and"   ? PredicateLogic::kAnd
                                          : base == "or"  ? PredicateLogic::kOr
                                          : base == "xor" ? PredicateLogic::kXor
                                                          : PredicateLogic::kNot);
    out.d = decoder.predicate_destination(decoder.operand(0));
    out.a = decoder.predicate_source(decoder.operand(1));
    if (!one) out.b = decoder.predicate_source(decoder.operand(2));
    return true;
  }
  const int width = type == Type::kNone || is_float(type) ? 0 : bytes(type);
  out.handler = base == "and"   ? bitwise<And>(width)
                : base == "or"  ? bitwise<Or>(width)
                : base == "xor" ? bitwise<Xor>(width)
                : base == "not" ? bitwise_unary<Not>(width)
                                : bitwise_unary<Cnot>(width);
  if (out.handler == nullptr) decoder.unknown();
  out.d = decoder.destination(decoder.operand(0), width);
  out.a = decoder.source(decoder.operand(1), type);
  if (!one) out.b = decoder.source(decoder.operand(2), type);
  return true;
}

Handler shift_handler(bool left, Type type) {
  switch (type) {
    case Type::kB16:
      return left ? shift<Shl, std::uint16_t> : shift<Shr, std::uint16_t>;
    case Type::kB32:
      return left ? shift<Shl, std::uint32_t> : shift<Shr, std::uint32_t>;
    case Type::kB64:
      return left ? shift<Shl, std::uint64_t> : shift<Shr, std::uint64_t>;
    case Type::kU16:
      return left ? nullptr : shift<Shr, std::uint16_t>;
    case Type::kU32:
      return left ? nullptr : shift<Shr, std::uint32_t>;
    case Type::kU64:
      return left ? nullptr : shift<Shr, std::uint64_t>;
    case Type::kS16:
      return left ? nullptr : shift<Shr, std::int16_t>;
    case Type::kS32:
      return left ? nullptr : shift<Shr, std::int32_t>;
    case Type::kS64:
      return left ? nullptr : shift<Shr, std::int64_t>;
    default:
      return nullptr;
  }
}

bool decode_shift(Decoder& decoder) {
  const bool left = decoder.base() == "shl";
  if (!left && decoder.base() != "shr") return false;
  Instruction& out = decoder.out;
  const Type type = decoder.suffixes.take_type();
  out.kind = InstructionClass::kInteger;
  out.handler = shift_handler(left, type);
  if (out.handler == nullptr) decoder.unknown();
  decoder.expect_operands(3, 3);
  out.d = decoder.destination(decoder.operand(0), bytes(type));
  out.a = decoder.source(decoder.operand(1), type);
  out.b = decoder.source(decoder.operand(2), Type::kU32);
  return true;
}

void funnel_shift(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const bool left = (in.mode & 1) != 0, wraps = (in.mode & 2) != 0;
  using T = std::uint32_t;
  map_lanes<T, T, T, T>(warp, in, lanes, [=](T a, T b, T c) {
    const T by = wraps ? c & 31 : std::min<T>(c, 32);
    const std::uint64_t both = (static_cast<std::uint64_t>(b) << 32) | a;
    return static_cast<T>(left ? (both << by) >> 32 : both >> by);
  });
}

void lop3(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  using T = std::uint32_t;
  const auto table = static_cast<std::uint32_t>(in.immediate);
  const Lanes<T> a = load_lanes<T>(warp, in.a), b = load_lanes<T>(warp, in.b), c = load_lanes<T>(warp, in.c);
  Lanes<T> result{};
  for (std::uint32_t minterm = 0; minterm < 8; ++minterm) {
    if ((table >> minterm & 1) == 0) continue;
    const T na = (minterm & 4) != 0 ? 0 : ~T{0}, nb = (minterm & 2) != 0 ? 0 : ~T{0},
            nc = (minterm & 1) != 0 ? 0 : ~T{0};
    for (int lane = 0; lane < kLanes; ++lane)
      result.at[lane] |= (a.at[lane] ^ na) & (b.at[lane] ^ nb) & (c.at[lane] ^ nc);
  }
  if (in.d != kNoSlot) store_lanes(warp, in.d, result, lanes);
  if (in.mode == 0) return;
  std::uint32_t nonzero = 0;  // lop3.or / .and: d|p, with p = (d != 0) op q
  for (int lane = 0; lane < kLanes; ++lane) nonzero |= static_cast<std::uint32_t>(result.at[lane] != 0) << lane;
  const std::uint32_t q = load_predicate(warp, warp.program->lists[in.list + 1].slot);
  store_predicate(warp, warp.program->lists[in.list].slot, in.mode == 1 ? nonzero | q : nonzero & q, lanes);
}

bool decode_lop3(Decoder& decoder) {
  if (decoder.base() != "lop3") return false;
  Instruction& out = decoder.out;
  const bool with_or = decoder.suffixes.take("or"), with_and = decoder.suffixes.take("and");
  if (decoder.suffixes.take_type() != Type::kB32) decoder.unknown();
  out.kind = InstructionClass::kInteger;
  out.handler = lop3;
  out.mode = with_or ? 1 : with_and ? 2 : 0;
  decoder.expect_operands(out.mode != 0 ? 6 : 5, out.mode != 0 ? 6 : 5);
  const PtxOperand* destination = &decoder.operand(0);
  if (out.mode != 0) {
    if (destination->kind != PtxOperand::Kind::kPair) decoder.fail("a register and a predicate are needed");
    const Slot q = decoder.predicate_source(decoder.operand(5));
    const Slot p = decoder.predicate_destination(destination->parts[1]);
    destination = &destination->parts[0];
    decoder.begin_list();
    decoder.add_to_list(p, 0);
    decoder.add_to_list(q, 0);
  }
  out.d = decoder.destination(*destination, 4);
  out.a = decoder.source(decoder.operand(1), Type::kB32);
  out.b = decoder.source(decoder.operand(2), Type::kB32);
  out.c = decoder.source(decoder.operand(3), Type::kB32);
  if (decoder.operand(4).kind != PtxOperand::Kind::kInteger) decoder.fail("the table must be a constant");
  out.immediate = static_cast<std::int64_t>(decoder.operand(4).value);
  return true;
}

enum class Permute : std::uint16_t {
  kPlain,
  kForward4,
  kBackward4,
  kReplicate8,
  kEdgeClampLeft,
  kEdgeClampRight,
  kReplicate16
};
std::uint32_t permute_selector(Permute mode, std::uint32_t c) {
  static constexpr std::uint16_t kTables[6][4] = {{0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
                                                  {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
                                                  {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
  return mode == Permute::kPlain ? c : kTables[static_cast<int>(mode) - 1][c & 3];
}

void permute(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  using T = std::uint32_t;
  const auto mode = static_cast<Permute>(in.mode);
  map_lanes<T, T, T, T>(warp, in, lanes, [mode](T a, T b, T c) {
    const std::uint64_t both = (static_cast<std::uint64_t>(b) << 32) | a;
    const T selector = permute_selector(mode, c);
    T result = 0;
    for (int i = 0; i < 4; ++i) {
      const T select = (selector >> (4 * i)) & 0xf;
      T byte = static_cast<T>(both >> (8 * (select & 7))) & 0xff;
      if ((select & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
      result |= byte << (8 * i);
    }
    return result;
  });
}

bool decode_prmt(Decoder& decoder) {
  if (decoder.base() != "prmt") return false;
  Instruction& out = decoder.out;
  if (decoder.suffixes.take_type() != Type::kB32) decoder.unknown();
  constexpr std::string_view kModes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
  for (std::uint16_t i = 0; i < 6; ++i) {
    if (decoder.suffixes.take(kModes[i])) out.mode = static_cast<std::uint16_t>(i + 1);
  }
  decoder.expect_operands(4, 4);
  out.kind = InstructionClass::kInteger;
  out.handler = permute;
  out.d = decoder.destination(decoder.operand(0), 4);
  out.a = decoder.source(decoder.operand(1), Type::kB32);
  out.b = decoder.source(decoder.operand(2), Type::kB32);
  out.c = decoder.source(decoder.operand(3), Type::kB32);
  return true;
}

// ---- bit fields

template <class T>
void extract_field(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  using U = std::make_unsigned_t<T>;
  map_lanes<U, U, std::uint32_t, std::uint32_t>(warp, in, lanes, [](U a, std::uint32_t b, std::uint32_t c) {
    constexpr std::uint32_t kWidth = 8 * sizeof(T);
    const std::uint32_t at = b & 0xff, length = c & 0xff;
    if (length == 0) return U{0};
    // Bits above the field are sign bits. The sign is the field's top bit, or the value's if the field extends beyond
    // the value.
    const std::uint32_t taken = at >= kWidth ? 0 : std::min(length, kWidth - at);
    const U ones = taken == kWidth ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << taken) - 1);
    const U value = at >= kWidth ? U{0} : static_cast<U>((a >> at) & ones);
    const bool sign = std::is_signed_v<T> && (a >> std::min(at + length - 1, kWidth - 1) & 1) != 0;
    return sign ? static_cast<U>(value | ~ones) : value;
  });
}

template <class U>
void insert_field(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  constexpr std::uint32_t kTop = 8 * sizeof(U) - 1;
  const Lanes<U> a = load_lanes<U>(warp, in.a), b = load_lanes<U>(warp, in.b);
  const Lanes<std::uint32_t> c = load_lanes<std::uint32_t>(warp, in.c), e = load_lanes<std::uint32_t>(warp, in.e);
  Lanes<U> result;
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t at = c.at[lane] & 0xff, length = e.at[lane] & 0xff;
    U value = b.at[lane];
    if (at <= kTop && length != 0) {
      const U ones = length > kTop ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << length) - 1);
      value = static_cast<U>((value & ~(ones << at)) | ((a.at[lane] & ones) << at));
    }
    result.at[lane] = value;
  }
  store_lanes(warp, in.d, result, lanes);
}

void make_mask(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  using T = std::uint32_t;
  const bool wraps = in.option;
  map_lanes<T, T, T>(warp, in, lanes, [wraps](T a, T b) {
    const T at = wraps ? a & 31 : a, length = wraps ? b & 31 : b;
    if (at > 31) return T{0};
    const T ones = length > 31 ? ~T{0} : (T{1} << length) - 1;
    return ones << at;
  });
}

void sign_or_zero_extend(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  using T = std::uint32_t;
  const bool wraps = in.option, sign = is_signed(in.type);
  map_lanes<T, T, T>(warp, in, lanes, [=](T a, T b) {
    const T length = wraps ? b & 31 : std::min<T>(b, 32);
    if (length == 0) return T{0};
    if (length == 32) return a;
    const T kept = a & ((T{1} << length) - 1);
    return sign && (kept >> (length - 1)) != 0 ? kept | (~T{0} << length) : kept;
  });
}

template <class T>
struct Popc {
  static std::uint32_t apply(T a) { return static_cast<std::uint32_t>(std::popcount(a)); }
};
template <class T>
struct Clz {
  static std::uint32_t apply(T a) { return static_cast<std::uint32_t>(std::countl_zero(a)); }
};
template <template <class> class Op, class T>
void count_bits(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  map_lanes<std::uint32_t, T>(warp, in, lanes, [](T a) { return Op<T>::apply(a); });
}

template <class T>
void find_bit(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  using U = std::make_unsigned_t<T>;
  const bool shift_amount = in.option;
  map_lanes<std::uint32_t, U>(warp, in, lanes, [shift_amount](U a) {
    if (std::is_signed_v<T> && static_cast<T>(a) < 0) a = static_cast<U>(~a);
    if (a == 0) return 0xffffffffu;
    const auto at = static_cast<std::uint32_t>(std::bit_width(a) - 1);
    return shift_amount ? static_cast<std::uint32_t>(8 * sizeof(T)) - 1 - at : at;
  });
}

template <class T>
void reverse_bits(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  map_lanes<T, T>(warp, in, lanes, [](T a) {
    T result = 0;
    for (std::size_t i = 0; i < 8 * sizeof(T); ++i) result = static_cast<T>((result << 1) | (a >> i & 1));
    return result;
  });
}

// The position of the n-th set bit from a base, upwards for n > 0, downwards for n < 0.
void find_nth_set(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  using T = std::uint32_t;
  map_lanes<T, T, T, std::int32_t>(warp, in, lanes, [](T mask, T base, std::int32_t n) {
    if (base > 31) return 0xffffffffu;
    if (n == 0) return (mask >> base & 1) != 0 ? base : 0xffffffffu;
    std::int64_t left = n < 0 ? -std::int64_t{n} : n;
    for (int at = static_cast<int>(base); at >= 0 && at < 32; at += n < 0 ? -1 : 1) {
      if ((mask >> at & 1) != 0 && --left == 0) return static_cast<T>(at);
    }
    return 0xffffffffu;
  });
}

bool decode_bit_field(Decoder& decoder) {
  const std::string_view base = decoder.base();
  Instruction& out = decoder.out;
  const bool insert = base == "bfi";
  if (!insert && base != "bfe") return false;
  const Type type = decoder.suffixes.take_type();
  const int width = bytes(type);
  if (is_float(type) || (width != 4 && width != 8)) decoder.unknown();
  decoder.expect_operands(insert ? 5 : 4, insert ? 5 : 4);
  out.d = decoder.destination(decoder.operand(0), width);
  out.a = decoder.source(decoder.operand(1), type);
  if (insert) {
    out.handler = width == 4 ? insert_field<std::uint32_t> : insert_field<std::uint64_t>;
    out.b = decoder.source(decoder.operand(2), type);
    out.c = decoder.source(decoder.operand(3), Type::kU32);
    out.e = decoder.source(decoder.operand(4), Type::kU32);
  } else {
    const bool sign = is_signed(type);
    out.handler = width == 4 ? (sign ? extract_field<std::int32_t> : extract_field<std::uint32_t>)
                             : (sign ? extract_field<std::int64_t> : extract_field<std::uint64_t>);
    out.b = decoder.source(decoder.operand(2), Type::kU32);
    out.c = decoder.source(decoder.operand(3), Type::kU32);
  }
  return true;
}

bool decode_counting(Decoder& decoder) {
  const std::string_view base = decoder.base();
  Instruction& out = decoder.out;
  if (base != "popc" && base != "clz" && base != "bfind" && base != "brev") return false;
  out.option = decoder.suffixes.take("shiftamt");
  const Type type = decoder.suffixes.take_type();
  const bool wide = bits(type) == 64;
  if (is_float(type) || (!wide && bits(type) != 32)) decoder.unknown();
  decoder.expect_operands(2, 2);
  if (base == "popc") out.handler = wide ? count_bits<Popc, std::uint64_t> : count_bits<Popc, std::uint32_t>;
  if (base == "clz") out.handler = wide ? count_bits<Clz, std::uint64_t> : count_bits<Clz, std::uint32_t>;
  if (base == "brev") out.handler = wide ? reverse_bits<std::uint64_t> : reverse_bits<std::uint32_t>;
  if (base == "bfind") {
    const bool sign = is_signed(type);
    out.handler = wide ? (sign ? find_bit<std::int64_t> : find_bit<std::uint64_t>)
                       : (sign ? find_bit<std::int32_t> : find_bit<std::uint32_t>);
  }
  out.d = decoder.destination(decoder.operand(0), base == "brev" ? bytes(type) : 4);
  out.a = decoder.source(decoder.operand(1), type);
  return true;
}

bool decode_three_words(Decoder& decoder) {
  const std::string_view base = decoder.base();
  Instruction& out = decoder.out;
  std::size_t sources = 2;
  if (base == "shf") {
    const bool left = decoder.suffixes.take("l");
    if (!left && !decoder.suffixes.take("r")) decoder.unknown();
    const bool wraps = decoder.suffixes.take("wrap");
    if (!wraps && !decoder.suffixes.take("clamp")) decoder.unknown();
    out.handler = funnel_shift;
    out.mode = static_cast<std::uint16_t>((left ? 1 : 0) | (wraps ? 2 : 0));
    sources = 3;
  } else if (base == "fns") {
    out.handler = find_nth_set;
    sources = 3;
  } else if (base == "bmsk" || base == "szext") {
    out.handler = base == "bmsk" ? make_mask : sign_or_zero_extend;
    out.option = decoder.suffixes.take("wrap");
    if (!out.option && !decoder.suffixes.take("clamp")) decoder.unknown();
  } else {
    return false;
  }
  out.type = decoder.suffixes.take_type();
  if (bits(out.type) != 32) decoder.unknown();
  decoder.expect_operands(sources + 1, sources + 1);
  out.d = decoder.destination(decoder.operand(0), 4);
  out.a = decoder.source(decoder.operand(1), Type::kB32);
  out.b = decoder.source(decoder.operand(2), Type::kB32);
  if (sources == 3) out.c = decoder.source(decoder.operand(3), Type::kB32);
  return true;
}

}  // namespace

bool decode_logic(Decoder& decoder) {
  decoder.out.kind = InstructionClass::kInteger;
  return decode_bitwise(decoder) || decode_shift(decoder) || decode_lop3(decoder) || decode_prmt(decoder) ||
         decode_bit_field(decoder) || decode_counting(decoder) || decode_three_words(decoder);
}

}  // namespace fusec::emulator
