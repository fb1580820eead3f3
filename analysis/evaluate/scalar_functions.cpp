#include "analysis/evaluate/scalar_functions.h"

#include <bit>
#include <cmath>
#include <limits>

#include "ir/error.h"
#include "ir/float_formats.h"

namespace fusec {
namespace {

double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

// +0 is greater than -0, as in IEEE 754-2019 and on GPUs.
double max_or_nan(double a, double b) {
  if (a == b) return std::signbit(a) ? b : a;
  return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b);
}
double min_or_nan(double a, double b) {
  if (a == b) return std::signbit(a) ? a : b;
  return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b);
}

double floor_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double sign(double x) {
  return std::isnan(x) ? x : x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0;
}

double unary(ExprOp op, double x) {
  switch (op) {
    case ExprOp::kNeg:
      return -x;
    case ExprOp::kAbs:
      return std::fabs(x);
    case ExprOp::kSign:
      return sign(x);
    case ExprOp::kExp:
      return std::exp(x);
    case ExprOp::kExp2:
      return std::exp2(x);
    case ExprOp::kExpm1:
      return std::expm1(x);
    case ExprOp::kLog:
      return std::log(x);
    case ExprOp::kLog2:
      return std::log2(x);
    case ExprOp::kLog10:
      return std::log10(x);
    case ExprOp::kLog1p:
      return std::log1p(x);
    case ExprOp::kSqrt:
      return std::sqrt(x);
    case ExprOp::kRsqrt:
      return 1.0 / std::sqrt(x);
    case ExprOp::kReciprocal:
      return 1.0 / x;
    case ExprOp::kSin:
      return std::sin(x);
    case ExprOp::kCos:
      return std::cos(x);
    case ExprOp::kTan:
      return std::tan(x);
    case ExprOp::kAsin:
      return std::asin(x);
    case ExprOp::kAcos:
      return std::acos(x);
    case ExprOp::kAtan:
      return std::atan(x);
    case ExprOp::kSinh:
      return std::sinh(x);
    case ExprOp::kCosh:
      return std::cosh(x);
    case ExprOp::kTanh:
      return std::tanh(x);
    case ExprOp::kAsinh:
      return std::asinh(x);
    case ExprOp::kAcosh:
      return std::acosh(x);
    case ExprOp::kAtanh:
      return std::atanh(x);
    case ExprOp::kErf:
      return std::erf(x);
    case ExprOp::kSigmoid:
      return sigmoid(x);
    case ExprOp::kFloor:
      return std::floor(x);
    case ExprOp::kCeil:
      return std::ceil(x);
    case ExprOp::kRoundEven:
      return std::nearbyint(x);
    case ExprOp::kTrunc:
      return std::trunc(x);
    default:
      break;
  }
  throw InternalError("no float function " + std::string(name(op)));
}

double binary(ExprOp op, double a, double b) {
  switch (op) {
    case ExprOp::kAdd:
      return a + b;
    case ExprOp::kSub:
      return a - b;
    case ExprOp::kMul:
      return a * b;
    case ExprOp::kDiv:
      return a / b;
    case ExprOp::kPow:
      return std::pow(a, b);
    case ExprOp::kMax:
      return max_or_nan(a, b);
    case ExprOp::kMin:
      return min_or_nan(a, b);
    case ExprOp::kFloorDiv:
      return std::floor(a / b);
    case ExprOp::kFloorMod:
      return floor_mod(a, b);
    case ExprOp::kFmod:
      return std::fmod(a, b);
    case ExprOp::kAtan2:
      return std::atan2(a, b);
    default:
      break;
  }
  throw InternalError("no float function " + std::string(name(op)));
}

std::int64_t wrap(std::int64_t v, ScalarType t) {
  switch (t) {
    case ScalarType::kBool:
      return v != 0;
    case ScalarType::kInt32:
      return static_cast<std::int32_t>(v);
    case ScalarType::kUInt32:
      return static_cast<std::uint32_t>(v);
    default:
      return v;
  }
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  std::uint64_t result = 1, b = static_cast<std::uint64_t>(base);
  for (; exponent > 0; exponent >>= 1, b *= b)
    if (exponent & 1) result *= b;
  return static_cast<std::int64_t>(result);
}

std::int64_t integer_unary(ExprOp op, ScalarType t, std::int64_t x) {
  const bool is_unsigned = t == ScalarType::kUInt32 || t == ScalarType::kUInt64;
  switch (op) {
    case ExprOp::kNeg:
      return static_cast<std::int64_t>(-static_cast<std::uint64_t>(x));
    case ExprOp::kAbs:
      return is_unsigned || x >= 0 ? x : static_cast<std::int64_t>(-static_cast<std::uint64_t>(x));
    case ExprOp::kSign:
      return is_unsigned ? x != 0 : (x > 0) - (x < 0);
    case ExprOp::kBitNot:
      return t == ScalarType::kBool ? !x : ~x;
    case ExprOp::kNot:
      return x == 0;
    case ExprOp::kFloor:
    case ExprOp::kCeil:
    case ExprOp::kRoundEven:
    case ExprOp::kTrunc:
      return x;
    default:
      break;
  }
  throw InternalError("no integer function " + std::string(name(op)));
}

template <class T>
T divide(ExprOp op, T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1)
      return op == ExprOp::kDiv || op == ExprOp::kFloorDiv ? static_cast<T>(-static_cast<std::uint64_t>(a)) : 0;
    const T q = a / b, r = a % b;
    const bool down = r != 0 && (r < 0) != (b < 0);
    switch (op) {
      case ExprOp::kFloorDiv:
        return down ? q - 1 : q;
      case ExprOp::kFloorMod:
        return down ? r + b : r;
      case ExprOp::kFmod:
        return r;
      default:
        return q;
    }
  } else {
    return op == ExprOp::kDiv || op == ExprOp::kFloorDiv ? a / b : a % b;
  }
}

std::int64_t integer_binary(ExprOp op, ScalarType t, std::int64_t a, std::int64_t b) {
  const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
  const bool wide_unsigned = t == ScalarType::kUInt64;
  switch (op) {
    case ExprOp::kAdd:
      return t == ScalarType::kBool ? (a || b) : static_cast<std::int64_t>(ua + ub);
    case ExprOp::kSub:
      return static_cast<std::int64_t>(ua - ub);
    case ExprOp::kMul:
      return static_cast<std::int64_t>(ua * ub);
    case ExprOp::kDiv:
    case ExprOp::kFloorDiv:
    case ExprOp::kFloorMod:
    case ExprOp::kFmod:
      return wide_unsigned ? static_cast<std::int64_t>(divide<std::uint64_t>(op, ua, ub))
                           : divide<std::int64_t>(op, a, b);
    case ExprOp::kPow:
      return power(a, b);
    case ExprOp::kMax:
      return (wide_unsigned ? ua > ub : a > b) ? a : b;
    case ExprOp::kMin:
      return (wide_unsigned ? ua < ub : a < b) ? a : b;
    case ExprOp::kAnd:
      return a & b;
    case ExprOp::kOr:
      return a | b;
    case ExprOp::kXor:
      return a ^ b;
    case ExprOp::kShl:
      return b >= 64 ? 0 : static_cast<std::int64_t>(ua << b);
    case ExprOp::kShr:
      return b >= 64 ? 0 : wide_unsigned ? static_cast<std::int64_t>(ua >> b) : a >> b;
    default:
      break;
  }
  throw InternalError("no integer function " + std::string(name(op)));
}

template <class T>
bool compare(ExprOp op, T a, T b) {
  switch (op) {
    case ExprOp::kEq:
      return a == b;
    case ExprOp::kNe:
      return a != b;
    case ExprOp::kLt:
      return a < b;
    case ExprOp::kLe:
      return a <= b;
    case ExprOp::kGt:
      return a > b;
    default:
      return a >= b;
  }
}

Lane converted(ScalarType from, ScalarType to, Lane a) {
  Lane r;
  if (is_float(to)) {
    if (is_float(from))
      r.real = a.real;
    else
      r.real = from == ScalarType::kUInt64 ? static_cast<double>(static_cast<std::uint64_t>(a.whole))
                                           : static_cast<double>(a.whole);
    return r;
  }
  if (to == ScalarType::kBool) {
    r.whole = is_float(from) ? a.real != 0 : a.whole != 0;
  } else if (is_float(from)) {
    if (to == ScalarType::kUInt64 && a.real >= 0x1p63)
      r.whole = static_cast<std::int64_t>(truncate_to_integer(DType::kUInt64, a.real));
    else
      r.whole = wrap(truncate_to_integer(to == ScalarType::kInt32 ? DType::kInt32 : DType::kInt64, a.real), to);
  } else {
    r.whole = wrap(a.whole, to);
  }
  return r;
}

Lane rounded(DType dtype, ScalarType type, Lane a) {
  Lane r;
  if (is_float(type))
    r.real = round_to_float(dtype, a.real);
  else
    r.whole = wrap_integer(dtype, a.whole);
  return r;
}

Lane bitcast(ScalarType from, ScalarType to, Lane a) {
  std::uint64_t bits = 0;
  switch (from) {
    case ScalarType::kFloat32:
      bits = std::bit_cast<std::uint32_t>(static_cast<float>(a.real));
      break;
    case ScalarType::kFloat64:
      bits = std::bit_cast<std::uint64_t>(a.real);
      break;
    default:
      bits = static_cast<std::uint64_t>(a.whole);
  }
  Lane r;
  switch (to) {
    case ScalarType::kFloat32:
      r.real = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      break;
    case ScalarType::kFloat64:
      r.real = std::bit_cast<double>(bits);
      break;
    default:
      r.whole = wrap(static_cast<std::int64_t>(bits), to);
  }
  return r;
}

}  // namespace

Lane apply_scalar(const ExprNode& node, ScalarType operand, Lane a, Lane b, Lane c, Precision precision) {
  const ExprOp op = node.op;
  Lane r;
  if (op == ExprOp::kConvert) {
    r = converted(operand, node.type, a);
  } else if (op == ExprOp::kRound) {
    return rounded(node.dtype, node.type, a);
  } else if (op == ExprOp::kBitcast) {
    return bitcast(operand, node.type, a);
  } else if (op == ExprOp::kSelect) {
    return a.whole ? b : c;
  } else if (op == ExprOp::kFma) {
    r.real = node.type == ScalarType::kFloat32 ? a.real * b.real + c.real : std::fma(a.real, b.real, c.real);
  } else if (op == ExprOp::kIsNan || op == ExprOp::kIsInf) {
    r.whole = is_float(operand) && (op == ExprOp::kIsNan ? std::isnan(a.real) : std::isinf(a.real));
    return r;
  } else if (op >= ExprOp::kEq && op <= ExprOp::kGe) {
    if (is_float(operand))
      r.whole = compare(op, a.real, b.real);
    else if (operand == ScalarType::kUInt64)
      r.whole = compare(op, static_cast<std::uint64_t>(a.whole), static_cast<std::uint64_t>(b.whole));
    else
      r.whole = compare(op, a.whole, b.whole);
    return r;
  } else if (arity(op) == 1) {
    if (is_float(node.type))
      r.real = unary(op, a.real);
    else
      r.whole = wrap(integer_unary(op, operand, a.whole), node.type);
  } else if (is_float(node.type)) {
    r.real = binary(op, a.real, b.real);
  } else {
    r.whole = wrap(integer_binary(op, operand, a.whole, b.whole), node.type);
  }
  if (node.type == ScalarType::kFloat32 && precision == Precision::kDeclared) r.real = static_cast<float>(r.real);
  return r;
}

Lane reduction_start(Reduction reduction, ScalarType type) {
  Lane r;
  const double infinity = std::numeric_limits<double>::infinity();
  if (is_float(type)) {
    switch (reduction) {
      case Reduction::kProd:
        r.real = 1;
        break;
      case Reduction::kMax:
      case Reduction::kArgMax:
        r.real = -infinity;
        break;
      case Reduction::kMin:
      case Reduction::kArgMin:
        r.real = infinity;
        break;
      default:
        r.real = 0;
    }
    return r;
  }
  const bool wide_unsigned = type == ScalarType::kUInt64;
  switch (reduction) {
    case Reduction::kProd:
    case Reduction::kAll:
      r.whole = 1;
      break;
    case Reduction::kMax:
    case Reduction::kArgMax:
      r.whole = wide_unsigned ? 0 : std::numeric_limits<std::int64_t>::min();
      break;
    case Reduction::kMin:
    case Reduction::kArgMin:
      r.whole = wide_unsigned ? -1 : std::numeric_limits<std::int64_t>::max();
      break;
    default:
      r.whole = 0;
  }
  return r;
}

Lane reduction_step(Reduction reduction, ScalarType type, Lane sum, Lane value) {
  Lane r;
  if (is_float(type)) {
    switch (reduction) {
      case Reduction::kProd:
        r.real = sum.real * value.real;
        break;
      case Reduction::kMax:
        r.real = max_or_nan(sum.real, value.real);
        break;
      case Reduction::kMin:
        r.real = min_or_nan(sum.real, value.real);
        break;
      default:
        r.real = sum.real + value.real;
    }
    return r;
  }
  switch (reduction) {
    case Reduction::kProd:
      r.whole = integer_binary(ExprOp::kMul, type, sum.whole, value.whole);
      break;
    case Reduction::kMax:
      r.whole = integer_binary(ExprOp::kMax, type, sum.whole, value.whole);
      break;
    case Reduction::kMin:
      r.whole = integer_binary(ExprOp::kMin, type, sum.whole, value.whole);
      break;
    case Reduction::kAny:
      r.whole = sum.whole || value.whole;
      break;
    case Reduction::kAll:
      r.whole = sum.whole && value.whole;
      break;
    default:
      r.whole = integer_binary(ExprOp::kAdd, type, sum.whole, value.whole);
  }
  r.whole = wrap(r.whole, type);
  return r;
}

}  // namespace fusec
