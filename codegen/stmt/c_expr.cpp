#include "codegen/stmt/c_expr.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace fusec {
namespace {

using ExprKind = CExpr::Kind;

constexpr int kPostfix = 16, kUnaryOperator = 15, kProduct = 13, kSum = 12, kAnd = 4, kOr = 3, kSelected = 2;

bool is_word(char c) {
  return c == '_' || c == '@' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit_char(char c) {
  return c >= '0' && c <= '9';
}

int precedence_of(std::string_view op) {
  if (op == "*" || op == "/" || op == "%") return kProduct;
  if (op == "+" || op == "-") return kSum;
  if (op == "<" || op == "<=" || op == ">" || op == ">=") return 9;
  return op == "&" ? 7 : op == "&&" ? kAnd : kOr;
}

// How tightly text binds, from its characters outside of brackets. Binary operators are printed between spaces.
int precedence_of_text(std::string_view text) {
  int depth = 0;
  std::size_t closes = 0;  // where the first bracket closes
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += bracket(text, i);
    if (depth == 0 && closes == 0) closes = i;
    if (depth == 0 && text[i] == ' ') return 0;
  }
  const bool group = text.starts_with('(') && closes + 1 == text.size();
  return group || is_word(text[0]) ? kPostfix : kUnaryOperator;
}

std::optional<std::int64_t> folded(std::string_view op, std::int64_t a, std::int64_t b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (b <= 0 || a < 0) return std::nullopt;  // C and people differ about quotients of negative numbers
  return op == "/" ? a / b : a % b;
}

bool fits_int(std::int64_t v) {
  return v <= std::numeric_limits<std::int32_t>::max() && v >= -std::numeric_limits<std::int32_t>::max();
}

// Whether nothing is lost where the value is not computed: loads and calls may be what a reader looks for.
bool is_arithmetic(const CExpr& e) {
  if (e.kind() == ExprKind::kCall || e.kind() == ExprKind::kText) return false;
  return std::ranges::all_of(e.operands(), is_arithmetic);
}

CExpr binary(std::string_view op, const CExpr& a, const CExpr& b) {
  return CExpr::operation(ExprKind::kBinary, std::string(op), {a, b});
}

bool is_binary(const CExpr& e, std::string_view op) {
  return e.kind() == ExprKind::kBinary && e.word() == op;
}

// c of x `op` c, where c is an integer.
std::optional<std::int64_t> right_integer(const CExpr& e, std::string_view op) {
  return is_binary(e, op) ? e.operands()[1].as_integer() : std::nullopt;
}

// The value of `a op b` if both are integers and it is one of 32 bits.
std::optional<std::int64_t> constant(std::string_view op, const CExpr& a, const CExpr& b) {
  const auto x = a.as_integer(), y = b.as_integer();
  if (!x || !y || !fits_int(*x) || !fits_int(*y)) return std::nullopt;
  const auto value = folded(op, *x, *y);
  return value && fits_int(*value) ? value : std::nullopt;
}

CExpr truth(bool value) {
  return value ? "true" : "false";
}

template <class Compare>
CExpr comparison(std::string_view op, const CExpr& a, const CExpr& b, Compare compare) {
  const auto x = a.as_integer(), y = b.as_integer();
  return x && y ? truth(compare(*x, *y)) : binary(op, a, b);
}

}  // namespace

int bracket(std::string_view text, std::size_t at) {
  const char c = text[at], before = at > 0 ? text[at - 1] : ' ';
  if (c == '(' || c == '[' || c == '{' || (c == '<' && is_word(before))) return 1;
  return c == ')' || c == ']' || c == '}' || (c == '>' && before != ' ' && before != '-') ? -1 : 0;
}

std::shared_ptr<const CExpr::Node> CExpr::integer(std::int64_t value) {
  return std::make_shared<const Node>(Node{ExprKind::kInteger, "", value});
}

CExpr::CExpr(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) {
    node_ = integer(value);
    return;
  }
  const bool name = std::ranges::all_of(text, is_word) && !text.empty() && !is_digit_char(text[0]);
  node_ = std::make_shared<const Node>(Node{name ? ExprKind::kName : ExprKind::kText, std::string(text)});
}

CExpr CExpr::operation(Kind kind, std::string text, std::vector<CExpr> operands) {
  CExpr e;
  e.node_ = std::make_shared<const Node>(Node{kind, std::move(text), 0, std::move(operands)});
  return e;
}

std::optional<std::int64_t> CExpr::as_integer() const {
  return kind() == ExprKind::kInteger ? std::optional(node_->value) : std::nullopt;
}

bool operator==(const CExpr& a, const CExpr& b) {
  return a.node_ == b.node_ || (a.kind() == b.kind() && a.word() == b.word() && a.node_->value == b.node_->value &&
                                a.operands() == b.operands());
}

int CExpr::precedence() const {
  switch (kind()) {
    case ExprKind::kInteger:
      return node_->value < 0 ? kUnaryOperator : kPostfix;
    case ExprKind::kText:
      return precedence_of_text(word());
    case ExprKind::kUnary:
    case ExprKind::kCast:
      return kUnaryOperator;
    case ExprKind::kBinary:
      return precedence_of(word());
    case ExprKind::kSelect:
      return kSelected;
    case ExprKind::kName:
    case ExprKind::kCall:
    case ExprKind::kIndex:
      return kPostfix;
  }
  return kPostfix;
}

std::string CExpr::operand(int outer) const {
  return precedence() < outer ? "(" + text() + ")" : text();
}

std::string CExpr::tight() const {
  return operand(kPostfix);
}

std::string CExpr::text() const {
  const std::vector<CExpr>& a = operands();
  switch (kind()) {
    case ExprKind::kInteger:
      return std::to_string(node_->value) + (fits_int(node_->value) ? "" : "ll");
    case ExprKind::kName:
    case ExprKind::kText:
      return word();
    case ExprKind::kUnary: {
      const std::string of = a[0].operand(kUnaryOperator);
      return word() + (of.starts_with(word()) ? "(" + of + ")" : of);
    }
    case ExprKind::kCast:
      return "(" + word() + ")" + a[0].operand(kUnaryOperator);
    case ExprKind::kBinary: {
      const int own = precedence();
      // Parentheses that the language does not ask for: `(a && b) || c`, `(a / b) * c`.
      const auto is_confusing = [&](const CExpr& e) {
        return (own == kOr && is_binary(e, "&&")) || (own == kProduct && (is_binary(e, "/") || is_binary(e, "%")));
      };
      const bool any_order = (own == kAnd || own == kOr) && is_binary(a[1], word());
      return a[0].operand(is_confusing(a[0]) ? kPostfix : own) + " " + word() + " " +
             a[1].operand(is_confusing(a[1]) ? kPostfix : own + (any_order ? 0 : 1));
    }
    case ExprKind::kSelect:
      return a[0].operand(kSelected + 1) + " ? " + a[1].operand(kSelected + 1) + " : " + a[2].operand(kSelected);
    case ExprKind::kIndex:
      return a[0].operand(kPostfix) + "[" + a[1].text() + "]";
    case ExprKind::kCall: {
      std::string list;
      for (const CExpr& argument : a) list += (list.empty() ? "" : ", ") + argument.text();
      return word() + "(" + list + ")";
    }
  }
  return {};
}

CExpr operator+(const CExpr& a, const CExpr& b) {
  if (const auto sum = constant("+", a, b)) return *sum;
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  if (a.as_integer() && !b.as_integer()) return b + a;
  if (const auto c = b.as_integer()) {
    if (*c < 0) return a - CExpr(-*c);
    if (const auto before = right_integer(a, "+")) return a.operands()[0] + (CExpr(*before) + b);
    if (const auto before = right_integer(a, "-")) return a.operands()[0] + (b - CExpr(*before));
  }
  if (b.kind() == ExprKind::kUnary && b.word() == "-") return a - b.operands()[0];
  if (const auto by = right_integer(b, "*"); by && *by < 0) return a - b.operands()[0] * CExpr(-*by);
  return binary("+", a, b);
}

CExpr operator-(const CExpr& a, const CExpr& b) {
  if (const auto difference = constant("-", a, b)) return *difference;
  if (b.is(0)) return a;
  if (a.is(0)) return -b;
  if (a == b && is_arithmetic(a)) return 0;
  if (const auto c = b.as_integer()) {
    if (*c < 0) return a + CExpr(-*c);
    if (const auto before = right_integer(a, "+")) return a.operands()[0] + (CExpr(*before) - b);
    if (const auto before = right_integer(a, "-")) return a.operands()[0] - (CExpr(*before) + b);
  }
  return binary("-", a, b);
}

CExpr operator*(const CExpr& a, const CExpr& b) {
  if (const auto product = constant("*", a, b)) return *product;
  if (a.as_integer() && !b.as_integer()) return b * a;
  if (b.is(1)) return a;
  if (b.is(0) && is_arithmetic(a)) return 0;
  if (const auto by = right_integer(a, "*"); by && b.as_integer()) return a.operands()[0] * (CExpr(*by) * b);
  return binary("*", a, b);
}

CExpr operator/(const CExpr& a, const CExpr& b) {
  if (const auto quotient = constant("/", a, b)) return *quotient;
  if (b.is(1)) return a;
  // Products are of positions, which do not overflow.
  const auto factor = right_integer(a, "*"), by = b.as_integer();
  if (factor && by && *by > 0 && *factor % *by == 0) return a.operands()[0] * CExpr(*factor / *by);
  return binary("/", a, b);
}

CExpr operator%(const CExpr& a, const CExpr& b) {
  if (const auto remainder = constant("%", a, b)) return *remainder;
  if (b.is(1) && is_arithmetic(a)) return 0;
  return binary("%", a, b);
}

CExpr operator<(const CExpr& a, const CExpr& b) {
  return comparison("<", a, b, std::less<>());
}
CExpr operator<=(const CExpr& a, const CExpr& b) {
  return comparison("<=", a, b, std::less_equal<>());
}
CExpr operator>(const CExpr& a, const CExpr& b) {
  return comparison(">", a, b, std::greater<>());
}
CExpr operator>=(const CExpr& a, const CExpr& b) {
  return comparison(">=", a, b, std::greater_equal<>());
}

CExpr operator&&(const CExpr& a, const CExpr& b) {
  if (a.is_true() || b.is_false() || a == b) return b;
  if (b.is_true() || a.is_false()) return a;
  return binary("&&", a, b);
}

CExpr operator||(const CExpr& a, const CExpr& b) {
  if (a.is_false() || b.is_true() || a == b) return b;
  if (b.is_false() || a.is_true()) return a;
  return binary("||", a, b);
}

CExpr operator&(const CExpr& a, const CExpr& b) {
  return binary("&", a, b);
}

CExpr operator!(const CExpr& a) {
  if (a.is_true() || a.is_false()) return truth(a.is_false());
  if (a.kind() == ExprKind::kUnary && a.word() == "!") return a.operands()[0];
  return CExpr::operation(ExprKind::kUnary, "!", {a});
}

CExpr operator-(const CExpr& a) {
  if (const auto value = a.as_integer()) return -*value;
  if (a.kind() == ExprKind::kUnary && a.word() == "-") return a.operands()[0];
  return CExpr::operation(ExprKind::kUnary, "-", {a});
}

CExpr select(const CExpr& condition, const CExpr& yes, const CExpr& no) {
  if (condition.is_true() || yes == no) return yes;
  if (condition.is_false()) return no;
  return CExpr::operation(ExprKind::kSelect, "", {condition, yes, no});
}

CExpr cast(std::string_view type, const CExpr& value) {
  if (type == "int" && value.as_integer() && fits_int(*value.as_integer())) return value;
  if (value.kind() == ExprKind::kCast && value.word() == type) return value;
  return CExpr::operation(ExprKind::kCast, std::string(type), {value});
}

CExpr call(std::string_view function, std::vector<CExpr> arguments) {
  return CExpr::operation(ExprKind::kCall, std::string(function), std::move(arguments));
}

CExpr element(const CExpr& array, const CExpr& index) {
  return CExpr::operation(ExprKind::kIndex, "", {array, index});
}

CExpr pointee(const CExpr& address) {
  return CExpr::operation(ExprKind::kUnary, "*", {address});
}
CExpr pointee(std::string_view type, const CExpr& address) {
  return pointee(cast(std::string(type) + "*", address));
}

CExpr with_leaves(const CExpr& e, const std::function<CExpr(const CExpr& leaf)>& replacement) {
  if (e.is_leaf() || e.kind() == ExprKind::kText) return replacement(e);
  std::vector<CExpr> a;
  for (const CExpr& operand : e.operands()) a.push_back(with_leaves(operand, replacement));
  const std::string& op = e.word();
  if (e.kind() == ExprKind::kSelect) return select(a[0], a[1], a[2]);
  if (e.kind() == ExprKind::kCast) return cast(op, a[0]);
  if (e.kind() == ExprKind::kUnary && op != "*") return op == "-" ? -a[0] : !a[0];
  if (e.kind() != ExprKind::kBinary) return CExpr::operation(e.kind(), op, std::move(a));
  if (op == "+") return a[0] + a[1];
  if (op == "-") return a[0] - a[1];
  if (op == "*") return a[0] * a[1];
  if (op == "/") return a[0] / a[1];
  if (op == "%") return a[0] % a[1];
  if (op == "&&") return a[0] && a[1];
  if (op == "||") return a[0] || a[1];
  if (op == "&") return a[0] & a[1];
  return op == "<" ? a[0] < a[1] : op == "<=" ? a[0] <= a[1] : op == ">" ? a[0] > a[1] : a[0] >= a[1];
}

void for_each_leaf(const CExpr& e, const std::function<void(const CExpr& leaf)>& visit) {
  if (e.operands().empty() && e.kind() != ExprKind::kCall) return visit(e);
  if (e.kind() == ExprKind::kCall || e.kind() == ExprKind::kCast) visit(CExpr(e.word()));
  for (const CExpr& operand : e.operands()) for_each_leaf(operand, visit);
}

void for_each_word(std::string_view text, const std::function<void(std::size_t, std::size_t)>& visit) {
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      at = std::min(text.find('"', at + 1), text.size() - 1) + 1;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && (is_word(text[end]) || (is_digit_char(text[at]) && text[end] == '.'))) ++end;
    if (end == at) {
      ++at;
      continue;
    }
    const bool member = at > 0 && (text[at - 1] == '.' || text.substr(0, at).ends_with("->"));
    if (!is_digit_char(text[at]) && !member) visit(at, end);
    at = end;
  }
}

}  // namespace fusec
