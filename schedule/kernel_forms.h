// The form of a kernel, found from its expressions before any code is emitted. Schedules implement the rows of this
// table, and a test compares the two. Every known target has the tensor cores that the rows need.
//
//   form                   the kernel's expressions                                            example
//   pointwise              have no reduction                                                   silu(gate) * up
//   tensor_core_product    are a product (below) of operands in one 16-bit dtype               bfloat16 linear, gelu
//   product                have sums over K of two operands that run along different output
//                          axes, all alike; rows may choose their matrix; also reductions to
//                          one value per row, and any epilogue                                 linear in float32
//   row_gemm               are a product, then reductions of its whole rows; a block holds a
//                          row (schedule/gemm/row_gemm)                                        layer_norm(linear + r)
//   attention              are two products with a softmax between (attention_form)            softmax(q k^T) v
//   rows                   have reductions that depend on output axes only                     softmax, layer norm
//   elements               anything else: one thread per element, with a loop per reduction    nested sums
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "analysis/kernel/kernel.h"
#include "schedule/attention/attention_form.h"
#include "schedule/gemm/contraction.h"
#include "schedule/gemm/row_gemm.h"

namespace fusec {

struct PlansOfKernel;

enum class KernelForm : std::uint8_t {
  kPointwise,
  kTensorCoreContraction,
  kContraction,
  kRowGemm,
  kAttention,
  kRowReduction,
  kThreadPerElement
};
std::string_view name(KernelForm form);

// Returns the rank of a form. A kernel may exchange its form for one of higher rank. Pointwise and elements have rank
// 0.
int strength(KernelForm form);

struct FormOfKernel {
  KernelForm form = KernelForm::kThreadPerElement;
  // Why the kernel does not have the previous form of the table; "" for the first form.
  std::string_view why_not_better;
  // The kernel in the shape that has this form, if it had to change: for a grouped product the grouped axis split into
  // group and member, for several sums with shared axes.
  std::optional<Kernel> rewritten;
  std::optional<Contraction> contraction;  // of `rewritten` if there is one, else of the kernel
  ExprId blocking = kNoExpr;               // the reduction that prevents a product, if one does
  std::optional<RowGemm> row_gemm;
  std::optional<Attention> attention;
  mutable std::shared_ptr<PlansOfKernel> plans;  // kept by schedule/plan/kernel_planner
};

FormOfKernel form_of(const Kernel& kernel);

// Returns the kernel with its channel axis split into group and member; nothing unless a load uses the group's number.
std::optional<Kernel> with_groups_as_axis(const Kernel& kernel);

}  // namespace fusec
