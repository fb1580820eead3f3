#include "analysis/light_code.h"

#include <algorithm>

#include "analysis/kernel_forms.h"
#include "analysis/loads.h"
#include "analysis/operation_work.h"
#include "analysis/row_values.h"

namespace fusec {
namespace {

constexpr double kUnitMs = 30;
constexpr double kPointwise = 0.2, kMoved = 0.2, kOfFunctions = 0.8;
constexpr double kPointwiseMs = 40;  // of a thousand instructions
constexpr int kFunctionCode = 8;     // of code_of

// Milliseconds: of a thousand instructions, of their square since what a loop keeps lies between it and the next, and
// of a reduction.
struct RowsMs {
  double code, square, reduction;
};
constexpr RowsMs kTeams = {25, 30, 10}, kRowsTogether = {80, 0, 10}, kInterleaved = {58, 13, 15},
                 kKeptStrips = {50, 7, 6}, kColumns = {80, 0, 6};

RowsMs ms_of(const RowWays& ways) {
  if (!ways.turned.empty()) return kTeams;
  if (!ways.together.empty()) return kRowsTogether;
  if (ways.interleaved) {
    const InterleavedRows& way = *ways.interleaved;
    return way.in_strips && way.kept_turns > 0 && !way.cohort ? kKeptStrips : kInterleaved;
  }
  return ways.layouts.front().team == RowTeam::kColumn ? kColumns : kTeams;
}

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

double light_code(const RowWays& ways, const Graph& graph) {
  const RowsMs ms = ms_of(ways);
  const double thousands = elements_in_text(ways, graph) * code_of_row(ways.form, graph) / 1000.0;
  return (ms.code * thousands + ms.square * thousands * thousands +
          ms.reduction * static_cast<double>(ways.form.reductions.size())) /
         kUnitMs;
}

double light_code(const ColumnFolds& folds, const Graph& graph) {
  const double thousands = folds.elements * code_of_row(folds.rows, graph) / 1000.0;
  const auto reductions = static_cast<double>(folds.rows.reductions.size() + folds.folded);
  return (kTeams.code * thousands + kTeams.square * thousands * thousands + kTeams.reduction * reductions) / kUnitMs;
}

double light_code(const Kernel& kernel, const Graph& graph) {
  constexpr int kAccess = 2, kVector = 16;  // bytes
  const ExprPool& pool = kernel.pool;
  const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
  bool functions = false, across = false;
  int code = kAccess * static_cast<int>(kernel.outputs.size()), bytes = 1;
  for (const KernelOutput& output : kernel.outputs) bytes = std::max(bytes, bits(output.type.dtype) / 8);
  for (const ExprId id : reachable(pool, roots_of(kernel))) {
    const ExprNode& n = pool[id];
    code += code_of(n);
    if (n.op == ExprOp::kLoad) {
      code += kAccess;
      bytes = std::max(bytes, bits(n.dtype) / 8);
      across = across || (!axes.empty() && goes_across(kernel, graph, id, innermost_of(pool, axes)));
    }
    functions = functions || code_of(n) > kFunctionCode;
  }
  const double least = kPointwise + (across ? kMoved : 0) + (functions ? kOfFunctions : 0);
  return std::max(least, kPointwiseMs * code * (kVector / bytes) / 1000.0 / kUnitMs);
}

}  // namespace fusec
