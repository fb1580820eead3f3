#include "schedule/reduction/extra_outputs.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "analysis/kernel/copy_expr.h"
#include "schedule/kernel_forms.h"

namespace fusec {
namespace {

bool waits(const RowForm& form, const KernelOutput& output) {
  return std::ranges::any_of(reachable(form.kernel.pool, std::span(&output.expr, 1)),
                             [&](ExprId id) { return form.kernel.pool[id].op == ExprOp::kReduce; });
}

}  // namespace

RowForm with_extra_outputs(const RowForm& form) {
  const ExprPool& pool = form.kernel.pool;
  if (form.columns.empty() || form.reductions.empty() || !form.segments.empty()) return form;
  const std::vector<std::uint32_t> first = reduction_loops(form).front().axes;
  const auto same_extent = [&](std::uint32_t a, std::uint32_t b) { return pool.extent(a) == pool.extent(b); };
  if (!std::ranges::equal(first, form.columns, same_extent)) return form;
  RowForm parted = form;
  ExprCopier copier(pool, parted.kernel.pool);
  for (std::uint32_t a = 0; a < copier.axis.size(); ++a) copier.axis[a] = IndexExpr::axis(a);
  for (std::size_t i = 0; i < first.size(); ++i) copier.axis[form.columns[i]] = IndexExpr::axis(first[i]);
  std::erase_if(parted.kernel.outputs, [&](const KernelOutput& output) {
    return columns_without(form, output).empty() && !waits(form, output);
  });
  if (parted.kernel.outputs.empty()) return form;
  for (KernelOutput output : form.kernel.outputs) {
    if (!columns_without(form, output).empty() || waits(form, output)) continue;
    output.expr = copier.copy(output.expr);
    for (IndexExpr& index : output.index) index = copier.copy(index);
    output.axes = form.rows;
    output.axes.insert(output.axes.end(), first.begin(), first.end());
    parted.extra_outputs.push_back(std::move(output));
  }
  if (std::ranges::all_of(parted.kernel.outputs, [&](const KernelOutput& o) { return is_of_rows(form, o); })) {
    parted.columns.clear();
    for (KernelOutput& output : parted.kernel.outputs) output.axes = parted.rows;
  }
  return parted;
}

RowForm extra_outputs_if_read_once(const RowForm& form) {
  RowForm parted = with_extra_outputs(form);
  const std::vector<ReductionLoop> loops = reduction_loops(form);
  return parted.columns.empty() && std::ranges::count(loops, 0, &ReductionLoop::stage) == 1 ? parted : form;
}

std::vector<ExprId> roots_of_extra_outputs(const RowForm& form) {
  std::vector<ExprId> roots;
  for (const KernelOutput& output : form.extra_outputs) roots.push_back(output.expr);
  return roots;
}

}  // namespace fusec
