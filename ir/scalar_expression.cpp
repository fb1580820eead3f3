#include "ir/scalar_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <vector>

#include "ir/ops/clamp.h"
#include "ir/ops/common.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

constexpr std::size_t kLongestExpression = 4096;
constexpr int kDeepestExpression = 64;

struct Function {
  std::string_view name;
  std::size_t arguments;
  ExprOp op;
  bool wants_float = true;
};

constexpr Function kFunctions[] = {
    {"abs", 1, ExprOp::kAbs, false},
    {"sign", 1, ExprOp::kSign, false},
    {"exp", 1, ExprOp::kExp},
    {"exp2", 1, ExprOp::kExp2},
    {"expm1", 1, ExprOp::kExpm1},
    {"log", 1, ExprOp::kLog},
    {"log2", 1, ExprOp::kLog2},
    {"log10", 1, ExprOp::kLog10},
    {"log1p", 1, ExprOp::kLog1p},
    {"sqrt", 1, ExprOp::kSqrt},
    {"rsqrt", 1, ExprOp::kRsqrt},
    {"reciprocal", 1, ExprOp::kReciprocal},
    {"sin", 1, ExprOp::kSin},
    {"cos", 1, ExprOp::kCos},
    {"tan", 1, ExprOp::kTan},
    {"asin", 1, ExprOp::kAsin},
    {"acos", 1, ExprOp::kAcos},
    {"atan", 1, ExprOp::kAtan},
    {"sinh", 1, ExprOp::kSinh},
    {"cosh", 1, ExprOp::kCosh},
    {"tanh", 1, ExprOp::kTanh},
    {"asinh", 1, ExprOp::kAsinh},
    {"acosh", 1, ExprOp::kAcosh},
    {"atanh", 1, ExprOp::kAtanh},
    {"erf", 1, ExprOp::kErf},
    {"sigmoid", 1, ExprOp::kSigmoid},
    {"floor", 1, ExprOp::kFloor},
    {"ceil", 1, ExprOp::kCeil},
    {"round", 1, ExprOp::kRoundEven},
    {"trunc", 1, ExprOp::kTrunc},
    {"isnan", 1, ExprOp::kIsNan},
    {"isinf", 1, ExprOp::kIsInf},
    {"min", 2, ExprOp::kMin, false},
    {"max", 2, ExprOp::kMax, false},
    {"pow", 2, ExprOp::kPow},
    {"fmod", 2, ExprOp::kFmod},
    {"atan2", 2, ExprOp::kAtan2},
    // compose() builds these from several operations.
    {"relu", 1, ExprOp::kMax, false},
    {"square", 1, ExprOp::kMul, false},
    {"select", 3, ExprOp::kSelect, false},
    {"clamp", 3, ExprOp::kMin, false},
};

class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, Formula& f, std::span<const IndexExpr> index)
      : text_(text), f_(f), index_(index), float_type_(ScalarType::kFloat32) {
    if (f.output_type().dtype == DType::kFloat64) float_type_ = ScalarType::kFloat64;
    for (std::size_t i = 0; i < f.operand_count(); ++i)
      if (f.operand(i).kind == Operand::Kind::kTensor && f.type(i).dtype == DType::kFloat64)
        float_type_ = ScalarType::kFloat64;
  }

  E parse() {
    if (text_.size() > kLongestExpression)
      fail("the expression is too long", fmt::format("{} characters", text_.size()),
           fmt::format("at most {}", kLongestExpression));
    const E value = disjunction();
    skip_blanks();
    if (at_ < text_.size()) unexpected("an operator or the end");
    return value;
  }

 private:
  [[noreturn]] static void fail(std::string what, std::string found, std::string expected, std::string hint = "") {
    throw OpError{"attrs/expr", std::move(what), std::move(found), std::move(expected), std::move(hint)};
  }

  [[noreturn]] void unexpected(std::string expected) {
    const std::string found = at_ >= text_.size()
                                  ? in_quotes(text_) + ", which ends too early"
                                  : fmt::format("{} at position {}", in_quotes(text_.substr(at_, 16)), at_ + 1);
    fail("not an expression", found, std::move(expected));
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }

  bool take(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  void demand(std::string_view token) {
    if (!take(token)) unexpected(in_quotes(token));
  }

  // Parentheses and prefix operators nest; nothing else does.
  template <class F>
  E deeper(const F& parse_inner) {
    if (++depth_ > kDeepestExpression)
      fail("the expression nests too deep", "more levels", fmt::format("at most {}", kDeepestExpression));
    const E value = parse_inner();
    --depth_;
    return value;
  }

  E as_float(E e) { return is_float(e.type()) ? e : f_.convert(e, float_type_); }
  // Bools become int32 for arithmetic.
  E as_number(E e) { return e.type() == ScalarType::kBool ? f_.convert(e, ScalarType::kInt32) : e; }

  E disjunction() {
    E left = conjunction();
    while (take("||")) left = left || conjunction();
    return left;
  }

  E conjunction() {
    E left = comparison();
    while (take("&&")) left = left && comparison();
    return left;
  }

  E comparison() {
    const E left = sum();
    if (take("<=")) return left <= sum();
    if (take(">=")) return left >= sum();
    if (take("==")) return equal(left, sum());
    if (take("!=")) return not_equal(left, sum());
    if (take("<")) return left < sum();
    if (take(">")) return left > sum();
    return left;
  }

  E sum() {
    E left = product();
    for (;;) {
      if (take("+"))
        left = as_number(left) + as_number(product());
      else if (take("-"))
        left = as_number(left) - as_number(product());
      else
        return left;
    }
  }

  E product() {
    E left = unary();
    for (;;) {
      if (take("*"))
        left = as_number(left) * as_number(unary());
      else if (take("/"))
        left = as_float(left) / as_float(unary());
      else if (take("%"))
        left = apply(ExprOp::kFloorMod, as_number(left), as_number(unary()));
      else
        return left;
    }
  }

  E unary() {
    if (take("-")) return deeper([&] { return -as_number(unary()); });
    if (take("!")) return deeper([&] { return !unary(); });
    if (take("(")) {
      return deeper([&] {
        const E inner = disjunction();
        demand(")");
        return inner;
      });
    }
    skip_blanks();
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '$') return operand();
    if ((c >= '0' && c <= '9') || c == '.') return number();
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_') return word();
    unexpected("a number, an operand such as $0, a function or \"(\"");
  }

  E operand() {
    const std::size_t from = at_++;
    std::size_t position = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), position);
    if (error != std::errc{}) unexpected("the number of an operand");
    at_ = static_cast<std::size_t>(end - text_.data());
    if (position >= f_.operand_count() || !f_.has(position))
      fail("the expression reads an operand that the node does not have", in_quotes(text_.substr(from, at_ - from)),
           f_.operand_count() == 0 ? "a node with operands" : fmt::format("$0 to ${}", f_.operand_count() - 1));
    if (f_.operand(position).kind == Operand::Kind::kNumber) {
      const Scalar& v = f_.operand(position).number;
      return f_.scalar(v, v.category == Category::kFloat ? float_type_ : compute_type(f_.type(position).dtype));
    }
    return f_.load_broadcast(position, index_);
  }

  E number() {
    const std::string_view rest = text_.substr(at_);
    std::int64_t whole = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), whole);
    const std::size_t length = static_cast<std::size_t>(end - rest.data());
    const bool fraction = length < rest.size() && (rest[length] == '.' || rest[length] == 'e' || rest[length] == 'E');
    if (error == std::errc{} && !fraction) {
      at_ += length;
      const bool small = whole <= std::numeric_limits<std::int32_t>::max();
      return f_.integer(whole, small ? ScalarType::kInt32 : ScalarType::kInt64);
    }
    double value = 0;
    const auto [float_end, float_error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (float_error != std::errc{}) unexpected("a number in range");
    at_ += static_cast<std::size_t>(float_end - rest.data());
    return f_.number(value, float_type_);
  }

  E word() {
    const std::size_t from = at_;
    const auto continues = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    while (at_ < text_.size() && continues(text_[at_])) ++at_;
    const std::string_view name = text_.substr(from, at_ - from);
    if (name == "true" || name == "false") return f_.boolean(name == "true");
    if (name == "inf") return f_.number(std::numeric_limits<double>::infinity(), float_type_);
    if (name == "nan") return f_.number(std::numeric_limits<double>::quiet_NaN(), float_type_);
    const auto* function = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                        [&](const Function& row) { return row.name == name; });
    if (function == std::end(kFunctions)) {
      std::vector<std::string_view> names;
      for (const Function& row : kFunctions) names.push_back(row.name);
      fail("unknown function", in_quotes(name), "a function of scalar expressions", did_you_mean(name, names));
    }
    return deeper([&] { return call(*function); });
  }

  E call(const Function& function) {
    std::vector<E> arguments;
    demand("(");
    if (!take(")")) {
      do arguments.push_back(disjunction());
      while (take(","));
      demand(")");
    }
    if (arguments.size() != function.arguments)
      fail(fmt::format("wrong number of arguments of {}", function.name), std::to_string(arguments.size()),
           std::to_string(function.arguments));
    return compose(function, arguments);
  }

  E compose(const Function& function, std::vector<E> a) {
    if (function.name == "select") return select(a[0], a[1], a[2]);
    for (E& e : a) e = function.wants_float ? as_float(e) : as_number(e);
    if (function.name == "relu")
      return is_float(a[0].type()) ? ops::relu(a[0]) : maximum(a[0], f_.integer(0, ScalarType::kInt32));
    if (function.name == "square") return a[0] * a[0];
    if (function.name == "clamp") return minimum(maximum(a[0], a[1]), a[2]);
    return function.arguments == 1 ? apply(function.op, a[0]) : apply(function.op, a[0], a[1]);
  }

  std::string_view text_;
  Formula& f_;
  std::span<const IndexExpr> index_;
  ScalarType float_type_;  // type of literals, and of float functions of integers
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

ExprId expression_value(std::string_view text, Formula& f, Formula::Index index) {
  const E value = ExpressionParser(text, f, index).parse();
  const DType dtype = f.output_type().dtype;
  return ops::wrap(f, f.convert(value, compute_type(dtype)), dtype);
}

void check_expression(std::string_view text, const OpCall& call) {
  if (call.declared.size() != 1)
    throw OpError{"outputs", "an op with an expression", fmt::format("{} results", call.declared.size()), "one result"};
  const Shape& shape = call.declared[0].tensor.shape;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    if (!call.has(i)) continue;
    if (call.operands[i].kind == Operand::Kind::kTuple) ops::tensor_operand(call, i);
    ops::require_broadcastable(call, i, shape);
  }
  // Evaluate the expression once; the result is not used, but errors in the expression are thrown.
  ExprPool pool(call.symbols);
  Formula formula(pool, call.operands, call.attributes, call.declared);
  std::vector<IndexExpr> index;
  for (const Dim& dim : shape) index.push_back(IndexExpr::axis(pool.new_axis(dim)));
  expression_value(text, formula, index);
}

OpDef expression_row(std::string op_name) {
  OpDef row;
  row.name = std::move(op_name);
  row.family = "custom";
  row.summary = "a custom op of this model, given by an expression";
  row.operands = {"operands*"};
  row.custom = true;
  row.pattern = OpPattern::kOpaque;  // a node can override it, as for every custom op
  row.infer = [](const OpCall& call) -> std::vector<ValueType> {
    check_expression(call.attributes.text("expr"), call);
    return {call.declared.begin(), call.declared.end()};
  };
  row.formula = [](Formula& f, std::size_t, Formula::Index index) {
    return expression_value(f.attributes().text("expr"), f, index);
  };
  return row;
}

std::string expression_key(std::string_view op_name) {
  return "\xff" + std::string(op_name);
}

bool is_expression_key(std::string_view key) {
  return key.starts_with('\xff');
}

std::string op_of_expression_key(std::string_view key) {
  return std::string(key.substr(1));
}

}  // namespace fusec
