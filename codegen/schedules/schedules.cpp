#include "codegen/schedules/schedules.h"

#include "analysis/kernel_forms.h"
#include "codegen/schedules/attention.h"
#include "codegen/schedules/contraction.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/gemm.h"
#include "codegen/schedules/pointwise.h"
#include "codegen/schedules/row_product.h"
#include "codegen/schedules/row_reduction.h"
#include "ir/error.h"

namespace fusec {

std::vector<KernelSource> schedule(const Kernel& kernel, const Graph& graph, const Target& target, const EmitOptions&) {
  const FormOfKernel form = form_of(kernel);
  switch (form.form) {
    case KernelForm::kPointwise:
      return {pointwise(kernel, graph, target)};
    case KernelForm::kTensorCoreProduct:
    case KernelForm::kProduct: {
      const Kernel& shaped = form.rewritten ? *form.rewritten : kernel;
      if (const auto tiled = find_gemm(graph, shaped, *form.product, target))
        return {gemm(shaped, *form.product, *tiled, graph)};
      return {contraction(shaped, *form.product, graph)};
    }
    case KernelForm::kRowProduct:
      return {row_product(*form.row_product, graph)};
    case KernelForm::kAttention:
      return attention(*form.attention, graph, target);
    case KernelForm::kRows:
      if (auto sources = row_reduction(kernel, graph, target); !sources.empty()) return sources;
      [[fallthrough]];
    case KernelForm::kElements:
      return {direct(kernel, graph, target)};
  }
  throw InternalError("a kernel of unknown form");
}

}  // namespace fusec
