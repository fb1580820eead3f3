// Prints the accumulators of reductions: initial values and the combination with one more element.
#include <fmt/format.h>

#include "codegen/expr/emit_expr.h"
#include "ir/type.h"

namespace fusec {
namespace {

std::string least_value(ScalarType t) {
  switch (t) {
    case ScalarType::kBool:
      return "false";
    case ScalarType::kInt32:
      return "(-2147483647 - 1)";
    case ScalarType::kInt64:
      return "(-9223372036854775807ll - 1)";
    case ScalarType::kUInt32:
      return "0u";
    case ScalarType::kUInt64:
      return "0ull";
    case ScalarType::kFloat32:
      return "__uint_as_float(0xff800000u)";
    case ScalarType::kFloat64:
      return "__longlong_as_double((long long)0xfff0000000000000ull)";
  }
  return {};
}

std::string greatest_value(ScalarType t) {
  switch (t) {
    case ScalarType::kBool:
      return "true";
    case ScalarType::kInt32:
      return "2147483647";
    case ScalarType::kInt64:
      return "9223372036854775807ll";
    case ScalarType::kUInt32:
      return "4294967295u";
    case ScalarType::kUInt64:
      return "18446744073709551615ull";
    case ScalarType::kFloat32:
      return "__uint_as_float(0x7f800000u)";
    case ScalarType::kFloat64:
      return "__longlong_as_double(0x7ff0000000000000ll)";
  }
  return {};
}

}  // namespace

ExprEmitter::Accumulator ExprEmitter::declared(ExprId reduction) {
  Accumulator a = accumulator(reduction);
  writer_.line(fmt::format("{} {}{}{};", a.type, a.name, a.extreme ? "" : " = ", a.identity));
  return a;
}

ExprEmitter::Accumulator ExprEmitter::accumulator(ExprId reduction) {
  const ExprNode& n = pool_[reduction];
  const ScalarType body = pool_[n.args[0]].type;
  Accumulator a{.reduction = reduction, .name = writer_.unique(preferred_name(reduction)), .type = c_type(body)};
  switch (n.reduction) {
    case Reduction::kSum:
      a.identity = zero_text(body);
      a.combine = "Sum{}";
      break;
    case Reduction::kProd: {
      ExprNode one;
      one.type = body;
      one.integer = 1;
      one.real = 1;
      a.identity = constant_text(one);
      a.combine = "Product{}";
      break;
    }
    case Reduction::kMax:
      a.identity = least_value(body);
      a.combine = "Maximum{}";
      break;
    case Reduction::kMin:
      a.identity = greatest_value(body);
      a.combine = "Minimum{}";
      break;
    case Reduction::kAny:
      a.identity = "false";
      a.combine = "Any{}";
      break;
    case Reduction::kAll:
      a.identity = "true";
      a.combine = "All{}";
      break;
    case Reduction::kArgMax:
    case Reduction::kArgMin:
      writer_.use("extreme");
      a.extreme = true;
      a.type = fmt::format("Extreme<{}{}>", a.type, writer_.wide() ? ", long long" : "");
      a.identity =
          fmt::format("{{{}, 0}}", n.reduction == Reduction::kArgMax ? least_value(body) : greatest_value(body));
      a.combine = n.reduction == Reduction::kArgMax ? "FirstMaximum{}" : "FirstMinimum{}";
      break;
  }
  return a;
}

IndexExpr ExprEmitter::reduced_position(ExprId reduction) const {
  IndexExpr at = 0;
  for (const std::uint32_t a : pool_[reduction].axes) at = at * pool_.extent(a) + IndexExpr::axis(a);
  return simplify(at - reduced_from, pool_.bounds());
}

void ExprEmitter::accumulate(const std::vector<Accumulator>& accumulators) {
  std::vector<ExprId> bodies;
  for (const Accumulator& a : accumulators) bodies.push_back(pool_[a.reduction].args[0]);
  const std::vector<std::string> values = emit(bodies);
  for (std::size_t i = 0; i < accumulators.size(); ++i) {
    const Accumulator& a = accumulators[i];
    const ExprNode& n = pool_[a.reduction];
    const ScalarType type = pool_[n.args[0]].type;
    const bool exact = kernel_.exact_steps && is_float(type);
    const bool whole = type == ScalarType::kInt32 || type == ScalarType::kInt64;
    switch (n.reduction) {
      case Reduction::kSum:
      case Reduction::kProd: {
        const bool sum = n.reduction == Reduction::kSum;
        if (exact) {
          writer_.line(fmt::format("{0} = __{1}{2}_rn({0}, {3});", a.name, type == ScalarType::kFloat32 ? "f" : "d",
                                   sum ? "add" : "mul", values[i]));
        } else if (whole) {
          writer_.use("int_arithmetic");
          writer_.line(fmt::format("{0} = wrap_{1}({0}, {2});", a.name, sum ? "add" : "mul", values[i]));
        } else if (type == ScalarType::kBool) {
          writer_.line(fmt::format("{0} = {0} {1} ({2});", a.name, sum ? "||" : "&&", values[i]));
        } else {
          writer_.line(fmt::format("{} {}= {};", a.name, sum ? "+" : "*", values[i]));
        }
        break;
      }
      case Reduction::kMax:
      case Reduction::kMin: {
        const bool greatest = n.reduction == Reduction::kMax;
        if (is_float(type)) {
          writer_.use("nan_max");
          writer_.line(fmt::format("{0} = {1}({0}, {2});", a.name, greatest ? "nan_max" : "nan_min", values[i]));
        } else if (type == ScalarType::kBool) {
          writer_.line(fmt::format("{0} = {0} {1} ({2});", a.name, greatest ? "||" : "&&", values[i]));
        } else {
          writer_.line(fmt::format("{0} = {1}({0}, {2});", a.name, greatest ? "max" : "min", values[i]));
        }
        break;
      }
      case Reduction::kAny:
        writer_.line(fmt::format("{0} = {0} || ({1});", a.name, values[i]));
        break;
      case Reduction::kAll:
        writer_.line(fmt::format("{0} = {0} && ({1});", a.name, values[i]));
        break;
      case Reduction::kArgMax:
      case Reduction::kArgMin:
        writer_.line(fmt::format("{0} = {1}{2}({0}, {3}{{{4}, ({5}){6}}});", a.name, a.combine,
                                 positions_rise ? ".next" : "", a.type, values[i], writer_.index_type(),
                                 index_text_.tight(reduced_position(a.reduction))));
        break;
    }
  }
}

std::string ExprEmitter::result(const Accumulator& a) const {
  return a.extreme ? fmt::format("(long long){}.position", a.name) : a.name;
}

}  // namespace fusec
