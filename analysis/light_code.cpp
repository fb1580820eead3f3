#include "analysis/light_code.h"

#include <algorithm>

#include "analysis/loads.h"
#include "analysis/operation_work.h"

namespace fusec {
namespace {

constexpr double kPointwise = 0.2, kMoved = 0.2, kLoop = 0.3, kTensor = 0.15, kColumns = 1.1, kFunctions = 0.4;
constexpr double kMostOfRows = 2.5;  // reductions that share their loops are less
constexpr int kFunction = 8;         // of code_of

// Does a load go over memory otherwise than the innermost of these axes?
bool goes_across(const Kernel& kernel, const Graph& graph, ExprId load, std::uint32_t innermost) {
  const IndexExpr position = position_of(graph, kernel.pool, load);
  const Variable v{Variable::Kind::kAxis, innermost};
  return mentions(position, v) ? coefficient_of(position, v) != 1 : !variables_of(position).empty();
}

std::uint32_t innermost_of(const ExprPool& pool, const std::vector<std::uint32_t>& axes) {
  const auto last = std::ranges::find_if(axes.rbegin(), axes.rend(), [&](auto a) { return !pool.extent(a).is(1); });
  return last == axes.rend() ? axes.back() : *last;
}

}  // namespace

double light_code(const Kernel& kernel, KernelForm form, const Graph& graph) {
  const ExprPool& pool = kernel.pool;
  const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
  double loops = 0;
  bool functions = false, across = false, columns = false;
  for (const ExprId id : reachable(pool, roots_of(kernel))) {
    const ExprNode& n = pool[id];
    if (n.op == ExprOp::kReduce) {
      ++loops;
      for (const ExprId body : reachable(pool, std::span(&id, 1)))
        columns =
            columns || (pool[body].op == ExprOp::kLoad && !n.axes.empty() &&
                        goes_across(kernel, graph, body, innermost_of(pool, n.axes)) &&
                        mentions(position_of(graph, pool, body), {Variable::Kind::kAxis, innermost_of(pool, n.axes)}));
    }
    if (n.op == ExprOp::kLoad && !axes.empty())
      across = across || goes_across(kernel, graph, id, innermost_of(pool, axes));
    functions = functions || code_of(n) > kFunction;
  }
  const double of_functions = functions ? kFunctions : 0;
  if (form == KernelForm::kPointwise) return kPointwise + (across ? kMoved : 0) + of_functions;
  const bool has_elements = kernel.outputs.size() > 0 && std::ranges::any_of(kernel.outputs, [&](const auto& output) {
                              return pool[output.expr].op != ExprOp::kReduce;
                            });
  const auto beside = static_cast<double>(inputs_of(kernel).size()) - 1;
  const double code = kLoop * (loops + (has_elements ? 1 : 0)) + kTensor * std::max(0.0, beside) +
                      (columns ? kColumns : 0) + of_functions;
  return std::min(code, kMostOfRows);
}

}  // namespace fusec
