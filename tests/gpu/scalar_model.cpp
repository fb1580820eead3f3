#include "gpu/scalar_model.h"

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <map>

namespace fusec::gpu_test {
namespace {

using Bits = const std::uint64_t*;

std::uint32_t low(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
std::int32_t whole(std::uint64_t value) {
  return static_cast<std::int32_t>(low(value));
}
std::int64_t wide(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}
std::uint32_t saturated(std::int64_t value) {
  if (value > std::numeric_limits<std::int32_t>::max()) return 0x7fffffffu;
  if (value < std::numeric_limits<std::int32_t>::min()) return 0x80000000u;
  return static_cast<std::uint32_t>(value);
}

// The high half of a 64-bit product, from 32-bit pieces.
std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a0 = low(a), a1 = a >> 32, b0 = low(b), b1 = b >> 32;
  const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + low(middle);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

std::uint64_t dot(Bits o, int bytes_of_a, bool signed_a, bool signed_b, bool upper) {
  std::uint32_t sum = low(o[2]);
  const int count = bytes_of_a == 1 ? 4 : 2;
  for (int i = 0; i < count; ++i) {
    const int bits = 8 * bytes_of_a;
    std::int64_t a = static_cast<std::int64_t>(low(o[0]) >> (bits * i) & ((1u << bits) - 1));
    if (signed_a && (a >> (bits - 1) & 1) != 0) a -= std::int64_t{1} << bits;
    std::int64_t b = static_cast<std::int64_t>(low(o[1]) >> (8 * (i + (upper ? 2 : 0))) & 0xff);
    if (signed_b && b >= 128) b -= 256;
    sum += static_cast<std::uint32_t>(a * b);
  }
  return sum;
}

std::uint64_t permuted(Bits o, std::uint32_t selector) {
  const std::uint64_t bytes = low(o[0]) | static_cast<std::uint64_t>(low(o[1])) << 32;
  std::uint64_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t pick = selector >> (4 * i) & 15;
    std::uint64_t byte = bytes >> (8 * (pick & 7)) & 0xff;
    if ((pick & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

// bfe: positions and lengths are 8 bits; bits beyond the operand are copies of the sign, or zeros.
std::uint64_t extracted(Bits o, bool is_signed) {
  const std::uint32_t a = low(o[0]), from = low(o[1]) & 255, length = low(o[2]) & 255;
  const std::uint32_t last = std::min(from + length - 1, 31u);
  const std::uint32_t sign = !is_signed || length == 0 ? 0 : a >> last & 1;
  std::uint32_t result = 0;
  for (std::uint32_t i = 0; i < 32; ++i) {
    const std::uint32_t bit = i < length && from + i < 32 ? a >> (from + i) & 1 : sign;
    result |= bit << i;
  }
  return result;
}

std::uint64_t highest_bit(std::uint32_t value, bool from_top) {
  for (int i = 31; i >= 0; --i) {
    if ((value >> i & 1) != 0) return static_cast<std::uint32_t>(from_top ? 31 - i : i);
  }
  return 0xffffffffu;
}

std::int64_t low24(std::uint64_t value, bool is_signed) {
  const std::int64_t bits = static_cast<std::int64_t>(value & 0xffffff);
  return is_signed && bits >= 0x800000 ? bits - 0x1000000 : bits;
}

const std::map<std::string, Model>& integer_models() {
  static const std::map<std::string, Model> models = {
      {"add.u32", [](Bits o) { return low(o[0] + o[1]); }},
      {"sub.u32", [](Bits o) { return low(o[0] - o[1]); }},
      {"mul.lo.u32", [](Bits o) { return low(o[0] * o[1]); }},
      {"mul.hi.u32", [](Bits o) { return std::uint64_t{low(o[0])} * low(o[1]) >> 32; }},
      {"mul.hi.s32",
       [](Bits o) { return low(static_cast<std::uint64_t>(std::int64_t{whole(o[0])} * whole(o[1]) >> 32)); }},
      {"mul24.lo.s32", [](Bits o) { return low(static_cast<std::uint64_t>(low24(o[0], true) * low24(o[1], true))); }},
      {"mul24.hi.u32",
       [](Bits o) { return low(static_cast<std::uint64_t>(low24(o[0], false) * low24(o[1], false)) >> 16); }},
      {"min.s32", [](Bits o) { return low(static_cast<std::uint64_t>(std::min(whole(o[0]), whole(o[1])))); }},
      {"max.u32", [](Bits o) { return std::max(low(o[0]), low(o[1])); }},
      {"and.b32", [](Bits o) { return low(o[0] & o[1]); }},
      {"or.b32", [](Bits o) { return low(o[0] | o[1]); }},
      {"xor.b32", [](Bits o) { return low(o[0] ^ o[1]); }},
      {"add.sat.s32", [](Bits o) { return saturated(std::int64_t{whole(o[0])} + whole(o[1])); }},
      {"sub.sat.s32", [](Bits o) { return saturated(std::int64_t{whole(o[0])} - whole(o[1])); }},
      // What hardware gives for a divisor of zero; the ISA leaves it open.
      {"div.u32", [](Bits o) { return low(o[1]) == 0 ? 0xffffffffu : low(o[0]) / low(o[1]); }},
      {"rem.u32", [](Bits o) { return low(o[1]) == 0 ? low(o[0]) : low(o[0]) % low(o[1]); }},
      {"shl.b32", [](Bits o) { return low(o[1]) > 31 ? 0u : low(o[0]) << low(o[1]); }},
      {"shr.u32", [](Bits o) { return low(o[1]) > 31 ? 0u : low(o[0]) >> low(o[1]); }},
      {"shr.s32", [](Bits o) { return low(static_cast<std::uint64_t>(whole(o[0]) >> std::min(low(o[1]), 31u))); }},
      {"add.u64", [](Bits o) { return o[0] + o[1]; }},
      {"sub.u64", [](Bits o) { return o[0] - o[1]; }},
      {"mul.lo.u64", [](Bits o) { return o[0] * o[1]; }},
      {"mul.hi.u64", [](Bits o) { return high_product(o[0], o[1]); }},
      {"mul.hi.s64",
       [](Bits o) { return high_product(o[0], o[1]) - (wide(o[0]) < 0 ? o[1] : 0) - (wide(o[1]) < 0 ? o[0] : 0); }},
      {"min.s64", [](Bits o) { return static_cast<std::uint64_t>(std::min(wide(o[0]), wide(o[1]))); }},
      {"max.u64", [](Bits o) { return std::max(o[0], o[1]); }},
      {"xor.b64", [](Bits o) { return o[0] ^ o[1]; }},
      {"mul.wide.u32", [](Bits o) { return std::uint64_t{low(o[0])} * low(o[1]); }},
      {"mul.wide.s32", [](Bits o) { return static_cast<std::uint64_t>(std::int64_t{whole(o[0])} * whole(o[1])); }},
      {"mad.lo.s32", [](Bits o) { return low(o[0] * o[1] + o[2]); }},
      {"mad.hi.u32", [](Bits o) { return low((std::uint64_t{low(o[0])} * low(o[1]) >> 32) + o[2]); }},
      {"sad.s32",
       [](Bits o) {
         const std::int64_t gap = std::int64_t{whole(o[0])} - whole(o[1]);
         return low(static_cast<std::uint64_t>(gap < 0 ? -gap : gap) + o[2]);
       }},
      {"sad.u32", [](Bits o) { return low(std::max(low(o[0]), low(o[1])) - std::min(low(o[0]), low(o[1])) + o[2]); }},
      {"dp4a.s32.s32", [](Bits o) { return dot(o, 1, true, true, false); }},
      {"dp4a.u32.s32", [](Bits o) { return dot(o, 1, false, true, false); }},
      {"dp2a.lo.s32.u32", [](Bits o) { return dot(o, 2, true, false, false); }},
      {"dp2a.hi.u32.u32", [](Bits o) { return dot(o, 2, false, false, true); }},
      {"shf.l.wrap.b32", [](Bits o) { return low((std::uint64_t{low(o[1])} << 32 | low(o[0])) << (o[2] & 31) >> 32); }},
      {"shf.r.clamp.b32",
       [](Bits o) { return low((std::uint64_t{low(o[1])} << 32 | low(o[0])) >> std::min(low(o[2]), 32u)); }},
      {"prmt.b32", [](Bits o) { return permuted(o, low(o[2])); }},
      {"prmt.b32.f4e", [](Bits o) { return permuted(o, 0x3210u + 0x1111u * (low(o[2]) & 3)); }},
      {"prmt.b32.rc8", [](Bits o) { return permuted(o, 0x1111u * (low(o[2]) & 3)); }},
      {"abs.s32", [](Bits o) { return low(whole(o[0]) < 0 ? 0 - o[0] : o[0]); }},
      {"neg.s32", [](Bits o) { return low(0 - o[0]); }},
      {"not.b32", [](Bits o) { return low(~o[0]); }},
      {"popc.b32", [](Bits o) { return static_cast<std::uint64_t>(std::popcount(low(o[0]))); }},
      {"clz.b32", [](Bits o) { return static_cast<std::uint64_t>(std::countl_zero(low(o[0]))); }},
      {"brev.b32",
       [](Bits o) {
         std::uint32_t result = 0;
         for (int i = 0; i < 32; ++i) result |= (low(o[0]) >> i & 1) << (31 - i);
         return result;
       }},
      {"bfind.u32", [](Bits o) { return highest_bit(low(o[0]), false); }},
      {"bfind.s32", [](Bits o) { return highest_bit(whole(o[0]) < 0 ? ~low(o[0]) : low(o[0]), false); }},
      {"bfind.shiftamt.u32", [](Bits o) { return highest_bit(low(o[0]), true); }},
      {"bfe.u32", [](Bits o) { return extracted(o, false); }},
      {"bfe.s32", [](Bits o) { return extracted(o, true); }},
  };
  return models;
}

// ---- floats, by the host's rounding modes

class RoundingScope {
 public:
  explicit RoundingScope(int mode) : before_(std::fegetround()) { std::fesetround(mode); }
  ~RoundingScope() { std::fesetround(before_); }

 private:
  int before_;
};

int mode_of(const std::string& rounding) {
  return rounding == "rz"   ? FE_TOWARDZERO
         : rounding == "rm" ? FE_DOWNWARD
         : rounding == "rp" ? FE_UPWARD
                            : FE_TONEAREST;
}

// Operands and result are volatile, so that nothing is computed before the rounding mode is set or after it is reset.
template <class T>
T compute(const std::string& op, T a, T b, T c, int mode) {
  volatile T x = a, y = b, z = c;
  const RoundingScope scope(mode);
  volatile T result = 0;
  if (op == "add") result = x + y;
  if (op == "sub") result = x - y;
  if (op == "mul") result = x * y;
  if (op == "div") result = x / y;
  if (op == "fma") result = std::fma(static_cast<T>(x), static_cast<T>(y), static_cast<T>(z));
  if (op == "sqrt") result = std::sqrt(static_cast<T>(x));
  if (op == "rcp") result = T(1) / x;
  return result;
}

float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

std::uint64_t single(const std::string& op, int mode, bool flushes, bool saturates, Bits o) {
  float operands[3];
  for (int i = 0; i < 3; ++i) {
    operands[i] = std::bit_cast<float>(low(o[i]));
    if (flushes) operands[i] = flushed(operands[i]);
  }
  float value = compute<float>(op, operands[0], operands[1], operands[2], mode);
  if (flushes) value = flushed(value);
  if (saturates) value = value > 0 ? std::min(value, 1.0f) : 0.0f;  // NaN gives +0
  if (std::isnan(value)) return 0x7fffffffu;
  return std::bit_cast<std::uint32_t>(value);
}

}  // namespace

Model integer_model(const std::string& instruction) {
  const auto found = integer_models().find(instruction);
  return found == integer_models().end() ? nullptr : found->second;
}

Model float_model(const std::string& op, const std::string& rounding, const std::string& ending) {
  const int mode = mode_of(rounding);
  if (ending == "f64") {
    return [op, mode](Bits o) {
      const auto operand = [o](int i) { return std::bit_cast<double>(o[i]); };
      return std::bit_cast<std::uint64_t>(compute<double>(op, operand(0), operand(1), operand(2), mode));
    };
  }
  const bool flushes = ending == "ftz.f32", saturates = ending == "sat.f32";
  return [op, mode, flushes, saturates](Bits o) { return single(op, mode, flushes, saturates, o); };
}

double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

}  // namespace fusec::gpu_test
