// Prints single operations: C operators where their meaning is that of ir/expr.h, otherwise prelude functions.
#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>

#include "codegen/expr/emit_expr.h"
#include "ir/error.h"

namespace fusec {

std::string constant_text(const ExprNode& n) {
  char digits[64];
  switch (n.type) {
    case ScalarType::kBool:
      return n.integer ? "true" : "false";
    case ScalarType::kInt32:
      return n.integer == -2147483648ll ? "(-2147483647 - 1)" : std::to_string(n.integer);
    case ScalarType::kUInt32:
      return std::to_string(static_cast<std::uint32_t>(n.integer)) + "u";
    case ScalarType::kInt64:
      return n.integer == INT64_MIN ? "(-9223372036854775807ll - 1)" : std::to_string(n.integer) + "ll";
    case ScalarType::kUInt64:
      return std::to_string(static_cast<std::uint64_t>(n.integer)) + "ull";
    case ScalarType::kFloat32: {
      const auto v = static_cast<float>(n.real);
      if (!std::isfinite(v)) return fmt::format("__uint_as_float(0x{:08x}u)", std::bit_cast<std::uint32_t>(v));
      std::string text(digits, std::to_chars(digits, digits + sizeof digits, v).ptr);
      if (text.find_first_of(".e") == std::string::npos) text += ".0";
      return text + "f";
    }
    case ScalarType::kFloat64: {
      if (!std::isfinite(n.real))
        return fmt::format("__longlong_as_double((long long)0x{:016x}ull)", std::bit_cast<std::uint64_t>(n.real));
      std::string text(digits, std::to_chars(digits, digits + sizeof digits, n.real).ptr);
      if (text.find_first_of(".e") == std::string::npos) text += ".0";
      return text;
    }
  }
  return {};
}

std::string zero_text(ScalarType type) {
  ExprNode n;
  n.type = type;
  return constant_text(n);
}

std::string ExprEmitter::arg(const ExprNode& n, std::size_t i) const {
  const Text& t = texts_[n.args[i]];
  return t.tight ? t.text : "(" + t.text + ")";
}

std::string ExprEmitter::loose(const ExprNode& n, std::size_t i) const {
  return texts_[n.args[i]].text;
}

ExprEmitter::Text ExprEmitter::call(std::string_view function, const ExprNode& n) const {
  std::string text = std::string(function) + "(";
  for (std::size_t i = 0; i < static_cast<std::size_t>(arity(n.op)); ++i) text += (i ? ", " : "") + loose(n, i);
  return {text + ")", true};
}

ExprEmitter::Text ExprEmitter::make_load(ExprId id) {
  const ExprNode& n = pool_[id];
  std::string text;
  if (load_text) text = load_text(id);
  if (text.empty()) {
    const std::string at = index(position(id));
    const std::string& pointer = writer_.input(n.source);
    if (bits(n.dtype) == 4) {
      writer_.use("nibble");
      text = widen(n.dtype, fmt::format("nibble({}, {})", pointer, at));
    } else {
      text = widen(n.dtype, fmt::format("{}[{}]", pointer, at));
    }
  }
  if (n.args[0] == kNoExpr) return {text, !text.starts_with("(int)") && !text.starts_with("(unsigned)")};
  return {fmt::format("{} ? {} : {}", arg(n, 0), text, zero_text(n.type)), false};
}

// Sums, differences and products. Integers wrap; floats contract only where that is allowed.
ExprEmitter::Text ExprEmitter::arithmetic(const ExprNode& n) const {
  const char* sign = n.op == ExprOp::kAdd ? "+" : n.op == ExprOp::kSub ? "-" : "*";
  const char* word = n.op == ExprOp::kAdd ? "add" : n.op == ExprOp::kSub ? "sub" : "mul";
  if (n.type == ScalarType::kInt32 || n.type == ScalarType::kInt64) {
    writer_.use("int_arithmetic");
    return call(fmt::format("wrap_{}", word), n);
  }
  if (kernel_.exact_steps && is_float(n.type))
    return call(fmt::format("__{}{}_rn", n.type == ScalarType::kFloat32 ? "f" : "d", word), n);
  if (n.type == ScalarType::kBool)
    return {fmt::format("{} {} {}", arg(n, 0),
                        n.op == ExprOp::kAdd   ? "||"
                        : n.op == ExprOp::kSub ? "!="
                                               : "&&",
                        arg(n, 1)),
            false};
  return {fmt::format("{} {} {}", arg(n, 0), sign, arg(n, 1)), false};
}

ExprEmitter::Text ExprEmitter::unary(const ExprNode& n) {
  const bool real = is_float(n.type);
  const std::string suffix = n.type == ScalarType::kFloat32 ? "f" : "";
  switch (n.op) {
    case ExprOp::kNeg:
      if (real || n.type == ScalarType::kUInt32 || n.type == ScalarType::kUInt64) return {"-" + arg(n, 0), false};
      if (n.type == ScalarType::kBool) return {loose(n, 0), false};
      writer_.use("int_arithmetic");
      return call("wrap_neg", n);
    case ExprOp::kAbs:
      if (real) return call("fabs" + suffix, n);
      if (n.type == ScalarType::kInt32 || n.type == ScalarType::kInt64) {
        writer_.use("int_arithmetic");
        return {fmt::format("{0} < 0 ? wrap_neg({1}) : {1}", arg(n, 0), loose(n, 0)), false};
      }
      return {loose(n, 0), false};
    case ExprOp::kSign:
      writer_.use("sign");
      return call("sign_of", n);
    case ExprOp::kSigmoid:
      writer_.use(kernel_.numerics.precise_math ? "sigmoid_precise" : "sigmoid");
      return call("sigmoid", n);
    case ExprOp::kReciprocal:
      return {(n.type == ScalarType::kFloat32 ? "1.0f / " : "1.0 / ") + arg(n, 0), false};
    case ExprOp::kRsqrt:
      if (n.type == ScalarType::kFloat64) return {"1.0 / sqrt(" + loose(n, 0) + ")", false};
      return call("rsqrtf", n);
    case ExprOp::kFloor:
    case ExprOp::kCeil:
    case ExprOp::kTrunc:
      if (!real) return {loose(n, 0), false};
      return call(std::string(name(n.op)) + suffix, n);
    case ExprOp::kRoundEven:
      if (!real) return {loose(n, 0), false};
      return call("rint" + suffix, n);
    case ExprOp::kNot:
      return {"!" + arg(n, 0), true};
    case ExprOp::kBitNot:
      if (n.type == ScalarType::kBool) return {"!" + arg(n, 0), true};
      return {"~" + arg(n, 0), true};
    case ExprOp::kIsNan:
      if (!is_float(pool_[n.args[0]].type)) return {"false", true};
      return {fmt::format("{0} != {0}", arg(n, 0)), false};
    case ExprOp::kIsInf:
      if (!is_float(pool_[n.args[0]].type)) return {"false", true};
      writer_.use("is_inf");
      return call("is_inf", n);
    default:  // mathematical functions have the same names in C
      return call(std::string(name(n.op)) + suffix, n);
  }
}

ExprEmitter::Text ExprEmitter::binary(const ExprNode& n) {
  const bool real = is_float(pool_[n.args[0]].type);
  const std::string suffix = pool_[n.args[0]].type == ScalarType::kFloat32 ? "f" : "";
  auto infix = [&](std::string_view sign) -> Text {
    if (compares_indices(n)) {
      const auto side = [&](ExprId id) {
        return index_text_.tight(pool_[id].op == ExprOp::kIndex ? pool_[id].indices[0] : IndexExpr(pool_[id].integer));
      };
      return {fmt::format("{} {} {}", side(n.args[0]), sign, side(n.args[1])), false};
    }
    return {fmt::format("{} {} {}", arg(n, 0), sign, arg(n, 1)), false};
  };
  auto helper = [&](const char* part, std::string_view function) {
    writer_.use(part);
    return call(function, n);
  };
  const bool boolean = pool_[n.args[0]].type == ScalarType::kBool;
  switch (n.op) {
    case ExprOp::kAdd:
    case ExprOp::kSub:
    case ExprOp::kMul:
      return arithmetic(n);
    case ExprOp::kDiv:
      return real ? infix("/") : helper("int_division", "int_div");
    case ExprOp::kPow:
      return real ? call("pow" + suffix, n) : helper("int_pow", "int_pow");
    case ExprOp::kMax:
    case ExprOp::kMin: {
      const bool greatest = n.op == ExprOp::kMax;
      if (boolean) return infix(greatest ? "||" : "&&");
      if (real) return helper("nan_max", greatest ? "nan_max" : "nan_min");
      return call(greatest ? "max" : "min", n);
    }
    case ExprOp::kFloorDiv:
      return real ? helper("float_floor_division", "float_floor_div") : helper("int_division", "int_floor_div");
    case ExprOp::kFloorMod:
      return real ? helper("float_floor_division", "float_floor_mod") : helper("int_division", "int_floor_mod");
    case ExprOp::kFmod:
      return real ? call("fmod" + suffix, n) : helper("int_division", "int_fmod");
    case ExprOp::kAtan2:
      return call("atan2" + suffix, n);
    case ExprOp::kEq:
      return infix("==");
    case ExprOp::kNe:
      return infix("!=");
    case ExprOp::kLt:
      return infix("<");
    case ExprOp::kLe:
      return infix("<=");
    case ExprOp::kGt:
      return infix(">");
    case ExprOp::kGe:
      return infix(">=");
    case ExprOp::kAnd:
      return infix(boolean ? "&&" : "&");
    case ExprOp::kOr:
      return infix(boolean ? "||" : "|");
    case ExprOp::kXor:
      return infix(boolean ? "!=" : "^");
    case ExprOp::kShl:
      return helper("shift", "shift_left");
    case ExprOp::kShr:
      return helper("shift", "shift_right");
    default:
      throw InternalError("no binary operation: " + std::string(name(n.op)));
  }
}

ExprEmitter::Text ExprEmitter::make(ExprId id) {
  const ExprNode& n = pool_[id];
  if (std::optional<Text> fast = fast_form(n)) return *std::move(fast);
  switch (n.op) {
    case ExprOp::kConstant: {
      std::string text = constant_text(n);
      const bool tight = !text.starts_with("-");
      return {std::move(text), tight};
    }
    case ExprOp::kLoad:
      return make_load(id);
    case ExprOp::kIndex:
      return {"(long long)" + index_text_.tight(n.indices[0]), false};
    case ExprOp::kConvert:
      if (n.type == ScalarType::kBool) return {arg(n, 0) + " != 0", false};
      return {fmt::format("({}){}", c_type(n.type), arg(n, 0)), false};
    case ExprOp::kRound: {
      if (n.dtype == DType::kBFloat16) {
        writer_.use("round_to_bf16");
        return call("round_to_bf16", n);
      }
      writer_.use(n.dtype);
      if (n.dtype == DType::kUInt4) return {fmt::format("{} & 15u", arg(n, 0)), false};
      const std::string narrowed = narrow(n.dtype, loose(n, 0));
      return {widen(n.dtype, narrowed), is_float(n.dtype) || n.dtype == DType::kInt4};
    }
    case ExprOp::kBitcast: {
      const ScalarType from = pool_[n.args[0]].type;
      if (n.type == ScalarType::kFloat32)
        return call(from == ScalarType::kUInt32 ? "__uint_as_float" : "__int_as_float", n);
      if (n.type == ScalarType::kFloat64) return {fmt::format("__longlong_as_double((long long){})", arg(n, 0)), true};
      if (from == ScalarType::kFloat32)
        return call(n.type == ScalarType::kUInt32 ? "__float_as_uint" : "__float_as_int", n);
      if (from == ScalarType::kFloat64)
        return {fmt::format("({})__double_as_longlong({})", c_type(n.type), loose(n, 0)), false};
      return {fmt::format("({}){}", c_type(n.type), arg(n, 0)), false};
    }
    case ExprOp::kSelect:
      return {fmt::format("{} ? {} : {}", arg(n, 0), arg(n, 1), arg(n, 2)), false};
    case ExprOp::kFma:
      if (!is_float(n.type)) {
        writer_.use("int_arithmetic");
        return {fmt::format("wrap_add(wrap_mul({}, {}), {})", loose(n, 0), loose(n, 1), loose(n, 2)), true};
      }
      return call(n.type == ScalarType::kFloat32 ? "fmaf" : "fma", n);
    case ExprOp::kReduce:
      throw InternalError("a reduction is no expression of C");
    default:
      return arity(n.op) == 1 ? unary(n) : binary(n);
  }
}

}  // namespace fusec
