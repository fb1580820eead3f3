#include "runtime/emulator/reduce_value.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

#include "runtime/emulator/numerics.h"

namespace fusec::emulator {
namespace {

template <class T>
T float_extreme(T a, T b, bool wants_max) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) == wants_max ? b : a;
  return (a < b) != wants_max ? a : b;
}

template <class U, class S>
U integer_update(ReduceOp op, bool sign, U old, U b) {
  switch (op) {
    case ReduceOp::kAdd:
      return static_cast<U>(old + b);
    case ReduceOp::kMin:
      return sign ? static_cast<U>(std::min(static_cast<S>(old), static_cast<S>(b))) : std::min(old, b);
    case ReduceOp::kMax:
      return sign ? static_cast<U>(std::max(static_cast<S>(old), static_cast<S>(b))) : std::max(old, b);
    case ReduceOp::kInc:
      return old >= b ? U{0} : static_cast<U>(old + 1);
    case ReduceOp::kDec:
      return old == 0 || old > b ? b : static_cast<U>(old - 1);
    case ReduceOp::kAnd:
      return old & b;
    case ReduceOp::kOr:
      return old | b;
    case ReduceOp::kXor:
      return old ^ b;
    default:
      return b;
  }
}

std::uint16_t half_update(ReduceOp op, bool brain, std::uint16_t old, std::uint16_t b) {
  const double x = brain ? bfloat_to_float(old) : half_to_float(old), y = brain ? bfloat_to_float(b) : half_to_float(b);
  const double value = op == ReduceOp::kAdd ? add_odd(x, y) : float_extreme(x, y, op == ReduceOp::kMax);
  return static_cast<std::uint16_t>(encode_float(value, brain ? kBFloat : kHalf, Rounding::kNearestEven));
}

std::uint64_t updated(ReduceOp op, Type type, std::uint64_t old, std::uint64_t b) {
  if (op == ReduceOp::kExch) return b;
  switch (type) {
    case Type::kF32: {
      const float x = std::bit_cast<float>(static_cast<std::uint32_t>(old)),
                  y = std::bit_cast<float>(static_cast<std::uint32_t>(b));
      return std::bit_cast<std::uint32_t>(
          canonical(op == ReduceOp::kAdd ? x + y : float_extreme(x, y, op == ReduceOp::kMax)));
    }
    case Type::kF64: {
      const double x = std::bit_cast<double>(old), y = std::bit_cast<double>(b);
      return std::bit_cast<std::uint64_t>(op == ReduceOp::kAdd ? x + y : float_extreme(x, y, op == ReduceOp::kMax));
    }
    case Type::kF16:
    case Type::kBF16:
      return half_update(op, type == Type::kBF16, static_cast<std::uint16_t>(old), static_cast<std::uint16_t>(b));
    case Type::kF16x2:
    case Type::kBF16x2: {
      const bool brain = type == Type::kBF16x2;
      const auto part = [&](int at) {
        return static_cast<std::uint64_t>(
                   half_update(op, brain, static_cast<std::uint16_t>(old >> at), static_cast<std::uint16_t>(b >> at)))
               << at;
      };
      return part(0) | part(16);
    }
    default:
      break;
  }
  const bool sign = is_signed(type);
  if (bits(type) == 64) return integer_update<std::uint64_t, std::int64_t>(op, sign, old, b);
  return integer_update<std::uint32_t, std::int32_t>(op, sign, static_cast<std::uint32_t>(old),
                                                     static_cast<std::uint32_t>(b));
}

template <class T>
std::uint64_t exchange(std::byte* host, ReduceOp op, Type type, std::uint64_t b, std::uint64_t c, bool& changed) {
  std::atomic_ref<T> place(*reinterpret_cast<T*>(host));
  T old = place.load();
  while (true) {
    const T next = op == ReduceOp::kCas ? (old == static_cast<T>(b) ? static_cast<T>(c) : old)
                                        : static_cast<T>(updated(op, type, old, b));
    if (!place.compare_exchange_weak(old, next)) continue;
    changed = changed || next != old;
    return old;
  }
}

}  // namespace

std::uint64_t reduce_value(std::byte* host, ReduceOp op, Type type, std::uint64_t b, std::uint64_t c, bool& changed) {
  switch (bytes(type)) {
    case 2:
      return exchange<std::uint16_t>(host, op, type, b, c, changed);
    case 4:
      return exchange<std::uint32_t>(host, op, type, b, c, changed);
    default:
      return exchange<std::uint64_t>(host, op, type, b, c, changed);
  }
}

}  // namespace fusec::emulator
