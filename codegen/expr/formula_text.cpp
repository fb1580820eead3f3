#include "codegen/expr/formula_text.h"

#include <map>

#include "codegen/expr/emit_expr.h"
#include "codegen/expr/identifiers.h"
#include "codegen/expr/index_text.h"

namespace fusec {
namespace {

constexpr std::size_t kLongestLine = 105, kMostLines = 4;

class FormulaText {
 public:
  FormulaText(const Graph& graph, const Kernel& kernel)
      : graph_(graph), pool_(kernel.pool), index_{pool_.bounds(), false, [this](Variable v) { return variable(v); }} {
    constexpr std::string_view kNames = "ijlmnpqr";
    const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
    for (std::size_t i = 0; i < axes.size(); ++i)
      axes_[axes[i]] = i < kNames.size() ? std::string(1, kNames[i]) : "i" + std::to_string(i);
  }

  // "" where it is long.
  std::string line(const KernelOutput& output) {
    std::string text = at(output.value, output.index) + " = " + value(output.expr);
    return length_ > kLongestLine ? "" : text;
  }

 private:
  std::string variable(Variable v) {
    if (v.kind == Variable::Kind::kSymbol) return comment_text(graph_.symbols[v.id].name, 20);
    if (v.kind == Variable::Kind::kValue) return value(v.id);
    const auto [axis, fresh] = axes_.try_emplace(v.id);
    if (fresh) axis->second = reduced_++ == 0 ? "k" : "k" + std::to_string(reduced_);
    return axis->second;
  }

  std::string at(ValueId tensor, const std::vector<IndexExpr>& indices) {
    std::string list;
    for (const IndexExpr& index : indices) list += (list.empty() ? "" : ", ") + index_(index);
    const std::string name = comment_text(graph_.value(tensor).name, 24);
    return list.empty() ? name : name + "[" + list + "]";
  }

  std::string constant(const ExprNode& n) const {
    if (!is_float(n.type)) return std::to_string(n.integer);
    std::string text = constant_text(n);
    if (text.ends_with('f') && text.find('(') == std::string::npos) text.pop_back();
    return text.starts_with("__") ? (n.real != n.real ? "nan" : n.real < 0 ? "-inf" : "inf") : text;
  }

  // As an operand; `tight` asks for parentheses around what has several parts.
  std::string value(ExprId id, bool tight = false) {
    const ExprNode& n = pool_[id];
    length_ += 4;
    if (length_ > kLongestLine) return "";
    const auto arg = [&](std::size_t i) { return value(n.args[i], true); };
    const auto group = [&](std::string text) {
      length_ += text.size() / 8;
      return tight ? "(" + text + ")" : text;
    };
    switch (n.op) {
      case ExprOp::kConstant:
        return constant(n);
      case ExprOp::kLoad: {
        const std::string loaded = at(n.source, n.indices);
        length_ += loaded.size();
        // A choice among loads says when each of them is there.
        return n.args[0] == kNoExpr || chosen_ > 0 ? loaded : group(value(n.args[0]) + " ? " + loaded + " : 0");
      }
      case ExprOp::kIndex:
        return tight ? index_.tight(n.indices[0]) : index_(n.indices[0]);
      case ExprOp::kConvert:
      case ExprOp::kRound:
      case ExprOp::kBitcast:
        return value(n.args[0], tight);
      case ExprOp::kSelect: {
        const std::string condition = value(n.args[0]);
        ++chosen_;
        std::string text = condition + " ? " + arg(1) + " : " + value(n.args[2]);
        --chosen_;
        return group(std::move(text));
      }
      case ExprOp::kReduce: {
        std::string over;
        for (const std::uint32_t axis : n.axes)
          over += (over.empty() ? "" : ",") + variable({Variable::Kind::kAxis, axis});
        return std::string(name(n.reduction)) + "_" + over + "(" + value(n.args[0]) + ")";
      }
      default:
        break;
    }
    if (const std::string_view sign = sign_of(n.op); !sign.empty())
      return group(arg(0) + " " + std::string(sign) + " " + arg(1));
    if (n.op == ExprOp::kNeg) return "-" + arg(0);
    if (n.op == ExprOp::kNot || n.op == ExprOp::kBitNot) return "!" + arg(0);
    std::string text;
    for (std::size_t i = 0; i < static_cast<std::size_t>(arity(n.op)); ++i)
      text += (i > 0 ? ", " : "") + value(n.args[i]);
    return std::string(name(n.op)) + "(" + text + ")";
  }

  static std::string_view sign_of(ExprOp op) {
    static const std::map<ExprOp, std::string_view> signs = {
        {ExprOp::kAdd, "+"},  {ExprOp::kSub, "-"}, {ExprOp::kMul, "*"},   {ExprOp::kDiv, "/"},  {ExprOp::kEq, "=="},
        {ExprOp::kNe, "!="},  {ExprOp::kLt, "<"},  {ExprOp::kLe, "<="},   {ExprOp::kGt, ">"},   {ExprOp::kGe, ">="},
        {ExprOp::kAnd, "&&"}, {ExprOp::kOr, "||"}, {ExprOp::kXor, "xor"}, {ExprOp::kShl, "<<"}, {ExprOp::kShr, ">>"}};
    const auto found = signs.find(op);
    return found == signs.end() ? "" : found->second;
  }

  const Graph& graph_;
  const ExprPool& pool_;
  IndexText index_;
  std::map<std::uint32_t, std::string> axes_;
  int reduced_ = 0, chosen_ = 0;  // reduced axes that have names; choices around what is printed
  std::size_t length_ = 0;
};

}  // namespace

std::vector<std::string> formula_lines(const Graph& graph, const Kernel& kernel) {
  std::vector<std::string> lines;
  if (kernel.outputs.size() > kMostLines) return lines;
  for (const KernelOutput& output : kernel.outputs) {
    std::string line = FormulaText(graph, kernel).line(output);
    if (line.empty() || line.size() > kLongestLine) return {};
    lines.push_back("  " + comment_text(line, kLongestLine + 3));
  }
  return lines;
}

}  // namespace fusec
