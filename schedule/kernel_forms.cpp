#include "schedule/kernel_forms.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/subpixel_phases.h"
#include "schedule/gemm/expert_index.h"
#include "schedule/gemm/hoist_scale.h"
#include "schedule/gemm/k_segments.h"

namespace fusec {
namespace {

// Returns the position of an output axis that some load uses as axis // c, and c: the channels of a group, at least
// `fewest`.
std::optional<std::pair<std::size_t, std::int64_t>> grouped_axis(const Kernel& kernel, std::int64_t fewest) {
  const ExprPool& pool = kernel.pool;
  const auto& axes = kernel.outputs[0].axes;
  for (const ExprId id : reachable(pool, roots_of(kernel))) {
    if (pool[id].op != ExprOp::kLoad) continue;
    for (const IndexExpr& e : pool[id].indices)
      for (const IndexTerm& term : e.terms())
        for (const IndexAtomPtr& factor : term.factors) {
          if (factor->kind != IndexAtom::Kind::kFloorDiv) continue;
          const auto v = factor->a.as_variable();
          const auto c = factor->b.as_constant();
          if (!v || !c || *c < fewest || v->kind != Variable::Kind::kAxis) continue;
          const auto at = std::find(axes.begin(), axes.end(), v->id);
          const auto extent = pool.extent(v->id).as_constant();
          if (at != axes.end() && extent && *extent % *c == 0)
            return std::pair{static_cast<std::size_t>(at - axes.begin()), *c};
        }
  }
  return std::nullopt;
}

// Returns the output axes that loads use both as axis // c and as axis % c, as pixel shuffles and merged heads do.
std::vector<std::pair<std::size_t, std::int64_t>> axes_in_parts(const Kernel& kernel) {
  const ExprPool& pool = kernel.pool;
  const auto& axes = kernel.outputs[0].axes;
  std::map<std::pair<std::size_t, std::int64_t>, std::set<IndexAtom::Kind>> seen;
  for (const ExprId id : reachable(pool, roots_of(kernel))) {
    if (pool[id].op != ExprOp::kLoad) continue;
    for (const IndexExpr& e : pool[id].indices)
      rewrite_atoms(e, [&](IndexAtom::Kind kind, const IndexExpr& a, const IndexExpr& b) -> IndexExpr {
        const auto v = a.as_variable();
        const auto c = b.as_constant();
        if (v && c && *c > 1 && v->kind == Variable::Kind::kAxis) {
          const auto at = std::find(axes.begin(), axes.end(), v->id);
          if (at != axes.end() && proves_multiple_of(pool.extent(v->id), *c, pool.bounds()))
            seen[{static_cast<std::size_t>(at - axes.begin()), *c}].insert(kind);
        }
        return kind == IndexAtom::Kind::kFloorDiv ? floor_div(a, b) : IndexExpr(0);
      });
  }
  std::vector<std::pair<std::size_t, std::int64_t>> found;
  for (const auto& [part, kinds] : seen)
    if (kinds.contains(IndexAtom::Kind::kFloorDiv) && kinds.contains(IndexAtom::Kind::kMod)) found.push_back(part);
  return found;
}

// Splits output axis `which` into group and member.
Kernel split_grouped_axis(const Kernel& kernel, std::size_t which, std::int64_t members) {
  return change_axes(kernel, [&](ExprPool& pool) {
    AxisChange change;
    const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const IndexExpr extent = kernel.pool.extent(axes[i]);
      if (i != which) {
        change.new_axes.push_back(pool.new_axis(extent));
        change.values.push_back(IndexExpr::axis(change.new_axes.back()));
        continue;
      }
      const std::uint32_t group = pool.new_axis(simplify(floor_div(extent, members), pool.bounds())),
                          member = pool.new_axis(members);
      change.new_axes.push_back(group);
      change.new_axes.push_back(member);
      change.values.push_back(IndexExpr::axis(group) * members + IndexExpr::axis(member));
    }
    return change;
  });
}

bool has_reduction(const Kernel& kernel) {
  return std::ranges::any_of(reachable(kernel.pool, roots_of(kernel)),
                             [&](ExprId id) { return kernel.pool[id].op == ExprOp::kReduce; });
}

// Splits every output axis that loads use in parts; nothing if there is none.
std::optional<Kernel> with_parts_as_axes(const Kernel& kernel) {
  constexpr int kMostSplits = 8;
  std::optional<Kernel> split;
  for (int i = 0; i < kMostSplits; ++i) {
    const Kernel& now = split ? *split : kernel;
    const auto parts = axes_in_parts(now);
    if (parts.empty()) break;
    split = split_grouped_axis(now, parts[0].first, parts[0].second);
  }
  return split;
}

FormOfKernel form_of_contraction(Contraction contraction, std::optional<Kernel> kernel) {
  FormOfKernel answer;
  answer.form = contraction.tensor_dtype ? KernelForm::kTensorCoreContraction : KernelForm::kContraction;
  answer.why_not_better = contraction.tensor_dtype ? "it holds a reduction"
                                                   : "its factors are not of one 16-bit float dtype, summed in float32";
  answer.contraction = std::move(contraction);
  answer.rewritten = std::move(kernel);
  return answer;
}

}  // namespace

int strength(KernelForm form) {
  if (form == KernelForm::kPointwise || form == KernelForm::kThreadPerElement) return 0;
  if (form == KernelForm::kRowReduction) return 1;
  return form == KernelForm::kContraction ? 2 : 3;
}

std::string_view name(KernelForm form) {
  switch (form) {
    case KernelForm::kPointwise:
      return "pointwise";
    case KernelForm::kTensorCoreContraction:
      return "tensor_core_product";
    case KernelForm::kContraction:
      return "product";
    case KernelForm::kRowGemm:
      return "row_gemm";
    case KernelForm::kAttention:
      return "attention";
    case KernelForm::kRowReduction:
      return "rows";
    case KernelForm::kThreadPerElement:
      return "elements";
  }
  return "";
}

FormOfKernel form_of(const Kernel& kernel) {
  if (!has_reduction(kernel)) return {.form = KernelForm::kPointwise, .why_not_better = ""};
  if (auto phases = with_subpixel_phases(kernel)) {
    FormOfKernel form = form_of(*phases);
    if (form.contraction) {
      if (!form.rewritten) form.rewritten = std::move(phases);
      return form;
    }
  }
  if (auto pieces = with_k_segments(kernel)) {
    FormOfKernel form = form_of(*pieces);
    if (form.contraction) {
      if (!form.rewritten) form.rewritten = std::move(pieces);
      return form;
    }
  }
  if (auto behind = hoist_scales(kernel)) {
    FormOfKernel form = form_of(*behind);
    if (form.contraction) {
      if (!form.rewritten) form.rewritten = std::move(behind);
      return form;
    }
  }
  ContractionMatch answer = find_contraction(kernel);
  if (answer.contraction) return form_of_contraction(std::move(*answer.contraction), std::move(answer.kernel));
  if (auto split = with_parts_as_axes(kernel)) {
    if (ContractionMatch in_parts = find_contraction(*split); in_parts.contraction)
      return form_of_contraction(std::move(*in_parts.contraction),
                                 in_parts.kernel ? std::move(in_parts.kernel) : std::move(split));
  }
  constexpr std::int64_t kFewestMembers = 8;  // a tile of fewer columns would be mostly empty
  if (const auto grouped = grouped_axis(kernel, kFewestMembers)) {
    Kernel split = split_grouped_axis(kernel, grouped->first, grouped->second);
    if (ContractionMatch in_groups = find_contraction(split); in_groups.contraction)
      return form_of_contraction(std::move(*in_groups.contraction),
                                 in_groups.kernel ? std::move(in_groups.kernel) : std::optional(std::move(split)));
  }
  if (auto chosen = with_expert_axis(kernel)) {
    if (ContractionMatch choosing = find_contraction(chosen->kernel); choosing.contraction && !choosing.kernel) {
      choosing.contraction->expert_index = chosen->expert_index;
      return form_of_contraction(std::move(*choosing.contraction), std::move(chosen->kernel));
    }
  }
  if (!writes_half_bytes(kernel)) {
    if (auto whole_rows = find_row_gemm(kernel)) {
      FormOfKernel form{.form = KernelForm::kRowGemm, .why_not_better = answer.why_not};
      form.row_gemm = std::move(whole_rows);
      return form;
    }
  }
  AttentionAnswer attention = find_attention(kernel);
  if (attention.attention) {
    FormOfKernel form{.form = KernelForm::kAttention, .why_not_better = answer.why_not};
    form.attention = std::move(attention.attention);
    return form;
  }
  FormOfKernel form{.form = KernelForm::kThreadPerElement, .why_not_better = "it writes half-byte elements"};
  form.blocking = answer.blocking;
  if (writes_half_bytes(kernel)) return form;
  const bool rows = !row_reductions(kernel).empty();
  form.form = rows ? KernelForm::kRowReduction : KernelForm::kThreadPerElement;
  form.why_not_better = rows                         ? answer.why_not
                        : !attention.why_not.empty() ? attention.why_not
                                                     : "its reductions depend on axes of other reductions";
  return form;
}

std::optional<Kernel> with_groups_as_axis(const Kernel& kernel) {
  const auto grouped = grouped_axis(kernel, 2);
  return grouped ? std::optional(split_grouped_axis(kernel, grouped->first, grouped->second)) : std::nullopt;
}

}  // namespace fusec
