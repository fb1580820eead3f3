// The names of scalar operations, and expressions as text for dumps and tests.
#include <cstdio>
#include <iterator>
#include <string>

#include "ir/expr.h"

namespace fusec {
namespace {

constexpr std::string_view kOpNames[] = {
    "constant", "load",  "index",   "convert", "round", "bitcast",    "neg",   "abs",   "sign",       "exp",
    "exp2",     "expm1", "log",     "log2",    "log10", "log1p",      "sqrt",  "rsqrt", "reciprocal", "sin",
    "cos",      "tan",   "asin",    "acos",    "atan",  "sinh",       "cosh",  "tanh",  "asinh",      "acosh",
    "atanh",    "erf",   "sigmoid", "floor",   "ceil",  "round_even", "trunc", "not",   "bit_not",    "is_nan",
    "is_inf",   "add",   "sub",     "mul",     "div",   "pow",        "max",   "min",   "floor_div",  "floor_mod",
    "fmod",     "atan2", "eq",      "ne",      "lt",    "le",         "gt",    "ge",    "and",        "or",
    "xor",      "shl",   "shr",     "select",  "fma",   "reduce"};
static_assert(std::size(kOpNames) == static_cast<std::size_t>(ExprOp::kReduce) + 1);
constexpr std::string_view kReductionNames[] = {"sum", "prod", "max", "min", "any", "all", "argmax", "argmin"};
constexpr std::string_view kScalarTypeNames[] = {"bool", "int32", "uint32", "int64", "uint64", "float32", "float64"};

}  // namespace

std::string_view name(ExprOp op) {
  return kOpNames[static_cast<std::size_t>(op)];
}
std::string_view name(Reduction reduction) {
  return kReductionNames[static_cast<std::size_t>(reduction)];
}
std::string_view name(ScalarType type) {
  return kScalarTypeNames[static_cast<std::size_t>(type)];
}

std::string to_string(const ExprPool& pool, ExprId id) {
  const ExprNode& n = pool[id];
  auto variable = [&](Variable v) -> std::string {
    switch (v.kind) {
      case Variable::Kind::kSymbol:
        return v.id < pool.bounds().symbols.size() ? pool.bounds().symbols[v.id].name : "s" + std::to_string(v.id);
      case Variable::Kind::kAxis:
        return "i" + std::to_string(v.id);
      case Variable::Kind::kValue:
        return "{" + to_string(pool, v.id) + "}";
    }
    return "?";
  };
  auto index_text = [&](const IndexExpr& e) { return to_string(e, variable); };
  auto call = [&](std::string_view function) {
    std::string text = std::string(function) + "(";
    for (int i = 0; i < arity(n.op); ++i)
      text += (i ? ", " : "") + to_string(pool, n.args[static_cast<std::size_t>(i)]);
    return text + ")";
  };
  switch (n.op) {
    case ExprOp::kConstant: {
      if (!is_float(n.type))
        return n.type == ScalarType::kBool ? (n.integer ? "true" : "false") : std::to_string(n.integer);
      char digits[40];
      std::snprintf(digits, sizeof digits, "%.9g", n.real);
      return digits;
    }
    case ExprOp::kLoad: {
      std::string text = "v" + std::to_string(n.source) + "[";
      for (std::size_t i = 0; i < n.indices.size(); ++i) text += (i ? ", " : "") + index_text(n.indices[i]);
      text += "]";
      return n.args[0] == kNoExpr ? text : text + " if " + to_string(pool, n.args[0]);
    }
    case ExprOp::kIndex:
      return index_text(n.indices[0]);
    case ExprOp::kConvert:
      return call(name(n.type));
    case ExprOp::kRound:
      return call(name(n.dtype));
    case ExprOp::kReduce: {
      std::string text = "reduce " + std::string(name(n.reduction)) + "[";
      for (std::size_t i = 0; i < n.axes.size(); ++i)
        text += (i ? ", i" : "i") + std::to_string(n.axes[i]) + "<" + index_text(pool.extent(n.axes[i]));
      return text + "](" + to_string(pool, n.args[0]) + ")";
    }
    default:
      return call(name(n.op));
  }
}

}  // namespace fusec
