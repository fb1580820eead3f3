#include "analysis/kernel/kernel_signature.h"

#include <fmt/format.h>

#include <bit>
#include <map>

namespace fusec {

KernelSignature signature_of(const Kernel& kernel, const Graph& graph) {
  KernelSignature signature;
  std::string& text = signature.text;
  auto out = std::back_inserter(text);
  std::map<ValueId, std::size_t> tensor_number;
  std::map<ExprId, std::size_t> expr_number;
  std::map<std::uint32_t, std::size_t> axis_number;
  std::function<std::string(Variable)> variable_name = [&](Variable v) -> std::string {
    switch (v.kind) {
      case Variable::Kind::kSymbol:
        return "s" + std::to_string(v.id);
      case Variable::Kind::kAxis:
        return "i" + std::to_string(axis_number.try_emplace(v.id, axis_number.size()).first->second);
      case Variable::Kind::kValue:
        return "e" + std::to_string(expr_number[v.id]);
    }
    return {};
  };
  auto index = [&](const IndexExpr& e) { return to_string(e, variable_name); };
  auto axis = [&](std::uint32_t a) { return variable_name({Variable::Kind::kAxis, a}); };
  auto tensor = [&](ValueId v) {
    const auto [it, fresh] = tensor_number.try_emplace(v, signature.tensors.size());
    if (fresh) {
      signature.tensors.push_back(v);
      fmt::format_to(out, "T{}:{};", it->second, to_string(graph.tensor(v), graph.symbols));
    }
    return it->second;
  };
  text = kernel.exact_steps ? "exact;" : "";
  for (const std::uint32_t a : kernel.outputs.at(0).axes)
    fmt::format_to(out, "{}<{};", axis(a), index(kernel.pool.extent(a)));
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel))) {
    const ExprNode& n = kernel.pool[id];
    if (n.op == ExprOp::kLoad) fmt::format_to(out, "{}:", tensor(n.source));
    for (const std::uint32_t a : n.axes) fmt::format_to(out, "{}<{};", axis(a), index(kernel.pool.extent(a)));
    fmt::format_to(out, "{},{},{},{},{},{:x}", static_cast<int>(n.op), static_cast<int>(n.type),
                   static_cast<int>(n.dtype), static_cast<int>(n.reduction), n.integer,
                   std::bit_cast<std::uint64_t>(n.real));
    for (const ExprId a : n.args)
      if (a != kNoExpr) fmt::format_to(out, ",e{}", expr_number[a]);
    for (const IndexExpr& e : n.indices) fmt::format_to(out, "[{}]", index(e));
    text += '\n';
    expr_number.try_emplace(id, expr_number.size());
  }
  for (const KernelOutput& output : kernel.outputs) {
    fmt::format_to(out, "out {} e{}", tensor(output.value), expr_number[output.expr]);
    for (const IndexExpr& e : output.index) fmt::format_to(out, "[{}]", index(e));
    text += '\n';
  }
  return signature;
}

}  // namespace fusec
