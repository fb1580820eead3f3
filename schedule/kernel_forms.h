// Which expressions fit one kernel, and in what form: known here, before any text is made. Schedules implement the rows
// of this table, and a test holds the two together. Every known target has the tensor cores that the rows ask for.
//
//   form                   the kernel's expressions                                            example
//   pointwise              hold no reduction                                                   silu(gate) * up
//   tensor_core_product    are products (below) of factors on one 16-bit dtype's grid          linear in bfloat16, gelu
//   product                hold sums of products of two factors that run along different
//                          output axes, all alike; rows may choose their matrix; beside them
//                          reductions that are one value for a row, and whatever stands around  linear in float32
//   row_product            are products of which whole rows, few enough to fit a block, are
//                          reduced (row_gemm)                                                  layer_norm(linear + r)
//   attention              are two products with a softmax between (attention_form)            softmax(q k^T) v
//   rows                   hold reductions that depend on output axes alone                    softmax, layer norm
//   elements               anything else: a thread makes an element, reductions are its loops  sums inside of sums
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "schedule/attention/attention_form.h"
#include "schedule/gemm/contraction.h"
#include "schedule/gemm/row_gemm.h"

namespace fusec {

enum class KernelForm : std::uint8_t {
  kPointwise,
  kTensorCoreProduct,
  kProduct,
  kRowProduct,
  kAttention,
  kRows,
  kElements
};
std::string_view name(KernelForm form);

// The order in which forms may be exchanged for better ones; what stands in no form at all is beside it.
int strength(KernelForm form);

struct FormOfKernel {
  KernelForm form = KernelForm::kElements;
  // Why it is not the form before it in the table; "" for the first.
  std::string_view why_not_better;
  // A product in groups: the kernel with its grouped axis as two, group and member. Several sums: with their axes
  // shared.
  std::optional<Kernel> rewritten;
  std::optional<Contraction> product;  // of `rewritten` where there is one, else of the kernel
  ExprId blocking = kNoExpr;           // the reduction for which it is no product, if it is for one
  std::optional<RowGemm> row_product;
  std::optional<Attention> attention;
};

FormOfKernel form_of(const Kernel& kernel);

// The kernel with its channels as two axes, group and member, where loads are of the group's number.
std::optional<Kernel> with_groups_as_axis(const Kernel& kernel);

}  // namespace fusec
