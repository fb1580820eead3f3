// Integer arithmetic: add sub mul mad (also .wide, .hi, 24-bit, with carry), div rem, min max, abs neg, sad, dp4a dp2a,
// and the packed 16-bit pairs.
#include <algorithm>
#include <limits>

#include "runtime/emulator/decode.h"
#include "runtime/emulator/lanes.h"

namespace fusec::emulator {
namespace {

template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;

template <class T>
T wrap_add(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}
template <class T>
T wrap_sub(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
}
template <class T>
T wrap_mul(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}

__extension__ using Wide128 = __int128;
__extension__ using UnsignedWide128 = unsigned __int128;
template <class T>
struct WideOf;
template <>
struct WideOf<std::uint16_t> {
  using type = std::uint32_t;
};
template <>
struct WideOf<std::int16_t> {
  using type = std::int32_t;
};
template <>
struct WideOf<std::uint32_t> {
  using type = std::uint64_t;
};
template <>
struct WideOf<std::int32_t> {
  using type = std::int64_t;
};
template <>
struct WideOf<std::uint64_t> {
  using type = UnsignedWide128;
};
template <>
struct WideOf<std::int64_t> {
  using type = Wide128;
};
template <class T>
using WideType = typename WideOf<T>::type;

template <class T>
T high_mul(T a, T b) {
  return static_cast<T>((static_cast<WideType<T>>(a) * static_cast<WideType<T>>(b)) >> (8 * sizeof(T)));
}

template <class T>
struct Add {
  static T apply(T a, T b) { return wrap_add(a, b); }
};
template <class T>
struct Sub {
  static T apply(T a, T b) { return wrap_sub(a, b); }
};
template <class T>
struct MulLow {
  static T apply(T a, T b) { return wrap_mul(a, b); }
};
template <class T>
struct MulHigh {
  static T apply(T a, T b) { return high_mul(a, b); }
};
template <class T>
struct Min {
  static T apply(T a, T b) { return std::min(a, b); }
};
template <class T>
struct Max {
  static T apply(T a, T b) { return std::max(a, b); }
};
template <class T>
struct MinRelu {
  static T apply(T a, T b) { return std::max(std::min(a, b), T{0}); }
};
template <class T>
struct MaxRelu {
  static T apply(T a, T b) { return std::max(std::max(a, b), T{0}); }
};
// Division by zero gives all ones, as on hardware; the most negative value divided by -1 wraps.
template <class T>
struct Div {
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return wrap_sub(T{0}, a);
    return static_cast<T>(a / b);
  }
};
template <class T>
struct Rem {
  static T apply(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return T{0};
    return static_cast<T>(a % b);
  }
};
template <class T>
struct Abs {
  static T apply(T a) { return a < 0 ? wrap_sub(T{0}, a) : a; }
};
template <class T>
struct Neg {
  static T apply(T a) { return wrap_sub(T{0}, a); }
};
template <class T>
struct MadLow {
  static T apply(T a, T b, T c) { return wrap_add(wrap_mul(a, b), c); }
};
template <class T>
struct MadHigh {
  static T apply(T a, T b, T c) { return wrap_add(high_mul(a, b), c); }
};
template <class T>
struct Sad {
  static T apply(T a, T b, T c) { return wrap_add(c, a < b ? wrap_sub(b, a) : wrap_sub(a, b)); }
};

template <template <class> class Op, class T>
void ternary(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  map_lanes<T, T, T, T>(warp, in, lanes, [](T a, T b, T c) { return Op<T>::apply(a, b, c); });
}

// Picks the handler of an operation for an integer type.
#define FUSEC_PICK_INTEGER(shape, Op, type) \
  [](Type wanted) -> Handler {              \
    switch (wanted) {                       \
      case Type::kU16:                      \
        return shape<Op, std::uint16_t>;    \
      case Type::kS16:                      \
        return shape<Op, std::int16_t>;     \
      case Type::kU32:                      \
        return shape<Op, std::uint32_t>;    \
      case Type::kS32:                      \
        return shape<Op, std::int32_t>;     \
      case Type::kU64:                      \
        return shape<Op, std::uint64_t>;    \
      case Type::kS64:                      \
        return shape<Op, std::int64_t>;     \
      default:                              \
        return nullptr;                     \
    }                                       \
  }(type)

template <class T>
void mul_wide(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  using W = WideType<T>;
  map_lanes<W, T, T>(warp, in, lanes, [](T a, T b) { return static_cast<W>(static_cast<W>(a) * static_cast<W>(b)); });
}
template <class T>
void mad_wide(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  using W = WideType<T>;
  map_lanes<W, T, T, W>(warp, in, lanes, [](T a, T b, W c) {
    return wrap_add<W>(static_cast<W>(static_cast<W>(a) * static_cast<W>(b)), c);
  });
}

void add_saturate(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const bool subtract = in.option;
  map_lanes<std::int32_t, std::int32_t, std::int32_t>(warp, in, lanes, [subtract](std::int32_t a, std::int32_t b) {
    const std::int64_t sum = subtract ? std::int64_t{a} - b : std::int64_t{a} + b;
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX));
  });
}

void mad_high_saturate(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  using T = std::int32_t;
  map_lanes<T, T, T, T>(warp, in, lanes, [](T a, T b, T c) {
    return static_cast<T>(std::clamp<std::int64_t>(std::int64_t{high_mul(a, b)} + c, INT32_MIN, INT32_MAX));
  });
}

// An operation on two 16-bit values packed in 32 bits.
template <template <class> class Op, class T>
void packed(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  map_lanes<std::uint32_t, std::uint32_t, std::uint32_t>(warp, in, lanes, [](std::uint32_t a, std::uint32_t b) {
    const auto low = static_cast<std::uint16_t>(Op<T>::apply(static_cast<T>(a), static_cast<T>(b)));
    const auto high = static_cast<std::uint16_t>(Op<T>::apply(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
    return static_cast<std::uint32_t>(low) | (static_cast<std::uint32_t>(high) << 16);
  });
}

// ---- carry: add.cc sub.cc mad.cc, addc subc madc

template <class T>
void with_carry(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const bool carry_in = (in.mode & 1) != 0, carry_out = (in.mode & 2) != 0, subtract = (in.mode & 4) != 0;
  const int product = in.mode >> 4;  // 0 none, 1 low, 2 high, 3 high and signed
  const Lanes<T> a = load_lanes<T>(warp, in.a), b = load_lanes<T>(warp, in.b);
  Lanes<T> c{};
  if (product != 0) c = load_lanes<T>(warp, in.c);
  Lanes<T> result;
  for (int lane = 0; lane < kLanes; ++lane) {
    T x = a.at[lane], y = b.at[lane];
    if (product != 0) {
      using Signed = std::make_signed_t<T>;
      x = product == 1   ? wrap_mul(x, y)
          : product == 2 ? high_mul(x, y)
                         : static_cast<T>(high_mul(static_cast<Signed>(x), static_cast<Signed>(y)));
      y = c.at[lane];
    }
    const UnsignedWide128 carry = carry_in ? (warp.carry >> lane & 1) : 0;
    const UnsignedWide128 sum =
        subtract ? static_cast<UnsignedWide128>(x) - y - carry : static_cast<UnsignedWide128>(x) + y + carry;
    result.at[lane] = static_cast<T>(sum);
    if (carry_out && (lanes >> lane & 1) != 0) {
      const bool out = ((sum >> (8 * sizeof(T))) & 1) != 0;
      warp.carry = (warp.carry & ~(1u << lane)) | (static_cast<std::uint32_t>(out) << lane);
    }
  }
  store_lanes(warp, in.d, result, lanes);
}

bool decode_carry(Decoder& decoder) {
  std::string_view base = decoder.base();
  const bool out_carry = decoder.suffixes.has("cc");
  const bool in_carry = base == "addc" || base == "subc" || base == "madc";
  if (!in_carry && !(out_carry && (base == "add" || base == "sub" || base == "mad"))) return false;
  decoder.suffixes.take("cc");
  Instruction& out = decoder.out;
  int product = 0;
  if (base.starts_with("mad")) {
    product = decoder.suffixes.take("lo") ? 1 : decoder.suffixes.take("hi") ? 2 : 0;
    if (product == 0) decoder.unknown();
  }
  const Type type = decoder.suffixes.take_type();
  const bool wide = bits(type) == 64;
  if (!is_integer(type) || (bits(type) != 32 && !wide)) decoder.unknown();
  decoder.expect_operands(product != 0 ? 4 : 3, product != 0 ? 4 : 3);
  out.kind = InstructionClass::kInteger;
  // Signedness matters only for the high half of a product. The carry is that of the unsigned addition.
  if (is_signed(type) && product == 2) product = 3;
  out.mode = static_cast<std::uint16_t>((in_carry ? 1 : 0) | (out_carry ? 2 : 0) | (base.starts_with("sub") ? 4 : 0) |
                                        (product << 4));
  if (wide)
    out.handler = with_carry<std::uint64_t>;
  else
    out.handler = with_carry<std::uint32_t>;
  out.d = decoder.destination(decoder.operand(0), bytes(type));
  out.a = decoder.source(decoder.operand(1), type);
  out.b = decoder.source(decoder.operand(2), type);
  if (product != 0) out.c = decoder.source(decoder.operand(3), type);
  return true;
}

// ---- dp4a dp2a

void dot_product(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const bool a_signed = (in.mode & 1) != 0, b_signed = (in.mode & 2) != 0, pairs = (in.mode & 4) != 0,
             high = (in.mode & 8) != 0;
  using T = std::uint32_t;
  map_lanes<T, T, T, T>(warp, in, lanes, [=](T a, T b, T c) {
    for (int i = 0; i < (pairs ? 2 : 4); ++i) {
      const T x = pairs ? (a >> (16 * i)) & 0xffff : (a >> (8 * i)) & 0xff;
      const T y = (b >> (8 * (i + (pairs && high ? 2 : 0)))) & 0xff;
      const T xs = !a_signed ? x
                   : pairs   ? static_cast<T>(static_cast<std::int16_t>(x))
                             : static_cast<T>(static_cast<std::int8_t>(x));
      const T ys = b_signed ? static_cast<T>(static_cast<std::int8_t>(y)) : y;
      c += xs * ys;
    }
    return c;
  });
}

bool decode_dot_product(Decoder& decoder) {
  const bool pairs = decoder.base() == "dp2a";
  if (!pairs && decoder.base() != "dp4a") return false;
  Instruction& out = decoder.out;
  const bool high = decoder.suffixes.take("hi");
  decoder.suffixes.take("lo");
  const Type a = decoder.suffixes.take_type(), b = decoder.suffixes.take_type();
  if (bits(a) != 32 || bits(b) != 32) decoder.unknown();
  decoder.expect_operands(4, 4);
  out.kind = InstructionClass::kInteger;
  out.handler = dot_product;
  out.mode =
      static_cast<std::uint16_t>((is_signed(a) ? 1 : 0) | (is_signed(b) ? 2 : 0) | (pairs ? 4 : 0) | (high ? 8 : 0));
  out.d = decoder.destination(decoder.operand(0), 4);
  out.a = decoder.source(decoder.operand(1), a);
  out.b = decoder.source(decoder.operand(2), b);
  out.c = decoder.source(decoder.operand(3), Type::kB32);
  return true;
}

// ---- the rest

void mul24(Warp& warp, const Instruction& in, std::uint32_t lanes) {
  const bool sign = is_signed(in.type), high = (in.mode & 1) != 0, adds = (in.mode & 2) != 0;
  const Lanes<std::uint32_t> a = load_lanes<std::uint32_t>(warp, in.a), b = load_lanes<std::uint32_t>(warp, in.b);
  Lanes<std::uint32_t> c{};
  if (adds) c = load_lanes<std::uint32_t>(warp, in.c);
  const auto extend = [sign](std::uint32_t value) -> std::int64_t {
    const std::int64_t low = value & 0xffffff;
    return sign && (low & 0x800000) != 0 ? low - 0x1000000 : low;
  };
  Lanes<std::uint32_t> result;
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::int64_t product = extend(a.at[lane]) * extend(b.at[lane]);
    if (in.saturate) {  // .hi.s32: bits 47 to 16 of the product as a signed 32-bit number
      const std::int64_t sum = (product >> 16) + static_cast<std::int32_t>(c.at[lane]);
      result.at[lane] = static_cast<std::uint32_t>(std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX));
    } else {
      result.at[lane] = static_cast<std::uint32_t>(high ? product >> 16 : product) + c.at[lane];
    }
  }
  store_lanes(warp, in.d, result, lanes);
}

Handler packed_handler(std::string_view base, Type type, bool relu) {
  const bool sign = type == Type::kS16x2;
  if (base == "add") return packed<Add, std::uint16_t>;
  if (base == "min")
    return relu ? packed<MinRelu, std::int16_t> : sign ? packed<Min, std::int16_t> : packed<Min, std::uint16_t>;
  if (base == "max")
    return relu ? packed<MaxRelu, std::int16_t> : sign ? packed<Max, std::int16_t> : packed<Max, std::uint16_t>;
  return nullptr;
}

Handler product_handler(bool adds, bool wide, bool high, Type type) {
  if (wide) {
    switch (type) {
      case Type::kU16:
        return adds ? mad_wide<std::uint16_t> : mul_wide<std::uint16_t>;
      case Type::kS16:
        return adds ? mad_wide<std::int16_t> : mul_wide<std::int16_t>;
      case Type::kU32:
        return adds ? mad_wide<std::uint32_t> : mul_wide<std::uint32_t>;
      case Type::kS32:
        return adds ? mad_wide<std::int32_t> : mul_wide<std::int32_t>;
      default:
        return nullptr;
    }
  }
  if (high) return adds ? FUSEC_PICK_INTEGER(ternary, MadHigh, type) : FUSEC_PICK_INTEGER(binary, MulHigh, type);
  return adds ? FUSEC_PICK_INTEGER(ternary, MadLow, type) : FUSEC_PICK_INTEGER(binary, MulLow, type);
}

bool decode_integer_product(Decoder& decoder) {
  const bool adds = decoder.base() == "mad";
  Instruction& out = decoder.out;
  const bool wide = decoder.suffixes.take("wide"), high = decoder.suffixes.take("hi"),
             low = decoder.suffixes.take("lo");
  if (!wide && !high && !low) return false;  // floating point
  const bool saturate = decoder.suffixes.take("sat");
  const Type type = decoder.suffixes.take_type();
  out.kind = InstructionClass::kInteger;
  out.handler = saturate ? (adds && high && type == Type::kS32 ? mad_high_saturate : nullptr)
                         : product_handler(adds, wide, high, type);
  if (out.handler == nullptr) decoder.unknown();
  decoder.expect_operands(adds ? 4 : 3, adds ? 4 : 3);
  const Type result = !wide ? type : bits(type) == 16 ? Type::kB32 : Type::kB64;
  out.d = decoder.destination(decoder.operand(0), bytes(result));
  out.a = decoder.source(decoder.operand(1), type);
  out.b = decoder.source(decoder.operand(2), type);
  if (adds) out.c = decoder.source(decoder.operand(3), result);
  return true;
}

bool decode_mul24(Decoder& decoder) {
  const bool adds = decoder.base() == "mad24";
  if (!adds && decoder.base() != "mul24") return false;
  Instruction& out = decoder.out;
  const bool high = decoder.suffixes.take("hi");
  if (!high && !decoder.suffixes.take("lo")) decoder.unknown();
  out.saturate = decoder.suffixes.take("sat");
  out.type = decoder.suffixes.take_type();
  if (out.saturate && !(adds && high && out.type == Type::kS32)) decoder.unknown();
  if (out.type != Type::kU32 && out.type != Type::kS32) decoder.unknown();
  decoder.expect_operands(adds ? 4 : 3, adds ? 4 : 3);
  out.kind = InstructionClass::kInteger;
  out.handler = mul24;
  out.mode = static_cast<std::uint16_t>((high ? 1 : 0) | (adds ? 2 : 0));
  out.d = decoder.destination(decoder.operand(0), 4);
  out.a = decoder.source(decoder.operand(1), out.type);
  out.b = decoder.source(decoder.operand(2), out.type);
  if (adds) out.c = decoder.source(decoder.operand(3), out.type);
  return true;
}

Handler plain_handler(std::string_view base, Type type, int& sources) {
  sources = 2;
  if (base == "add") return FUSEC_PICK_INTEGER(binary, Add, type);
  if (base == "sub") return FUSEC_PICK_INTEGER(binary, Sub, type);
  if (base == "div") return FUSEC_PICK_INTEGER(binary, Div, type);
  if (base == "rem") return FUSEC_PICK_INTEGER(binary, Rem, type);
  if (base == "min") return FUSEC_PICK_INTEGER(binary, Min, type);
  if (base == "max") return FUSEC_PICK_INTEGER(binary, Max, type);
  sources = 1;
  if (base == "abs") return FUSEC_PICK_INTEGER(unary, Abs, type);
  if (base == "neg") return FUSEC_PICK_INTEGER(unary, Neg, type);
  sources = 3;
  if (base == "sad") return FUSEC_PICK_INTEGER(ternary, Sad, type);
  return nullptr;
}

bool is_plain(std::string_view base) {
  return base == "add" || base == "sub" || base == "div" || base == "rem" || base == "min" || base == "max" ||
         base == "abs" || base == "neg" || base == "sad";
}

}  // namespace

bool decode_integer(Decoder& decoder) {
  const std::string_view base = decoder.base();
  if (decode_carry(decoder) || decode_dot_product(decoder) || decode_mul24(decoder)) return true;
  if (base == "mul" || base == "mad") return decode_integer_product(decoder);
  if (!is_plain(base)) return false;
  const std::vector<std::string>& words = decoder.ptx().suffixes;
  const std::optional<Type> type = words.empty() ? std::nullopt : parse_type(words.back());
  if (!type || is_float(*type) || *type == Type::kPred) return false;
  Instruction& out = decoder.out;
  out.kind = InstructionClass::kInteger;
  decoder.suffixes.take_type();
  int sources = 2;
  const bool relu = decoder.suffixes.take("relu");
  if (*type == Type::kU16x2 || *type == Type::kS16x2) {
    out.handler = packed_handler(base, *type, relu);
  } else if (decoder.suffixes.take("sat")) {
    if (*type != Type::kS32 || (base != "add" && base != "sub")) decoder.unknown();
    out.handler = add_saturate;
    out.option = base == "sub";
  } else if (relu) {
    if (*type != Type::kS32) decoder.unknown();
    out.handler = base == "min"   ? binary<MinRelu, std::int32_t>
                  : base == "max" ? binary<MaxRelu, std::int32_t>
                                  : nullptr;
  } else {
    out.handler = plain_handler(base, *type, sources);
  }
  if (out.handler == nullptr) decoder.unknown();
  decoder.expect_operands(static_cast<std::size_t>(sources) + 1, static_cast<std::size_t>(sources) + 1);
  out.d = decoder.destination(decoder.operand(0), bytes(*type));
  out.a = decoder.source(decoder.operand(1), *type);
  if (sources > 1) out.b = decoder.source(decoder.operand(2), *type);
  if (sources > 2) out.c = decoder.source(decoder.operand(3), *type);
  return true;
}

}  // namespace fusec::emulator
