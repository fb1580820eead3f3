#include "schedule/lowering/light_code_size.h"

#include <algorithm>

#include "analysis/kernel/loads.h"
#include "analysis/kernel/operation_work.h"
#include "schedule/kernel_forms.h"
#include "schedule/reduction/row_values.h"

namespace fusec {
namespace {

constexpr double kUnitMs = 30;
constexpr double kPointwise = 0.2, kPermuted = 0.2, kOfFunctions = 0.8;
constexpr double kPointwiseMs = 40;  // per thousand instructions
constexpr int kFunctionCode = 8;     // instruction_count above which a node is a function

// Milliseconds: per thousand instructions, per square of that (values live across a loop's iterations), and per
// reduction.
struct RowsMs {
  double code, square, reduction;
};
constexpr RowsMs kRowGroups = {25, 30, 10}, kMultiRow = {80, 0, 10}, kStrided = {58, 13, 15},
                 kRegisterStrips = {50, 7, 6}, kColumns = {80, 0, 6};

RowsMs ms_of(const RowCandidates& candidates) {
  const RowCandidate& best = candidates.plans.front();
  if (std::holds_alternative<TransposedRowReduction>(best)) return kRowGroups;
  if (std::holds_alternative<MultiRowBlock>(best)) return kMultiRow;
  if (const auto* plan = std::get_if<StridedReduction>(&best))
    return plan->in_strips && plan->register_vectors > 0 && !plan->resident_blocks ? kRegisterStrips : kStrided;
  return std::get<RowLayout>(best).reduction_group == ReductionGroup::kColumn ? kColumns : kRowGroups;
}

// Returns whether the load is strided along the innermost of these axes, or does not depend on it but on others.
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

double light_code_size(const RowCandidates& candidates, const Graph& graph) {
  const RowsMs ms = ms_of(candidates);
  const double thousands = unrolled_elements(candidates, graph) * code_of_row(candidates.form, graph) / 1000.0;
  return (ms.code * thousands + ms.square * thousands * thousands +
          ms.reduction * static_cast<double>(candidates.form.reductions.size())) /
         kUnitMs;
}

double light_code_size(const CrossRowReduction& cross_row, const Graph& graph) {
  const double thousands = cross_row.elements * code_of_row(cross_row.rows, graph) / 1000.0;
  const auto reductions = static_cast<double>(cross_row.rows.reductions.size() + cross_row.folded);
  return (kRowGroups.code * thousands + kRowGroups.square * thousands * thousands + kRowGroups.reduction * reductions) /
         kUnitMs;
}

double light_code_size(const Kernel& kernel, const Graph& graph) {
  constexpr int kAccess = 2, kVector = 16;  // bytes
  const ExprPool& pool = kernel.pool;
  const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
  bool functions = false, across = false;
  int code = kAccess * static_cast<int>(kernel.outputs.size()), bytes = 1;
  for (const KernelOutput& output : kernel.outputs) bytes = std::max(bytes, bits(output.type.dtype) / 8);
  for (const ExprId id : reachable(pool, roots_of(kernel))) {
    const ExprNode& n = pool[id];
    code += instruction_count(n);
    if (n.op == ExprOp::kLoad) {
      code += kAccess;
      bytes = std::max(bytes, bits(n.dtype) / 8);
      across = across || (!axes.empty() && goes_across(kernel, graph, id, innermost_of(pool, axes)));
    }
    functions = functions || instruction_count(n) > kFunctionCode;
  }
  const double least = kPointwise + (across ? kPermuted : 0) + (functions ? kOfFunctions : 0);
  return std::max(least, kPointwiseMs * code * (kVector / bytes) / 1000.0 / kUnitMs);
}

}  // namespace fusec
