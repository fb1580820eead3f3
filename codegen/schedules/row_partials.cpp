#include "codegen/schedules/row_partials.h"

#include <algorithm>

#include "codegen/kernel_writer.h"

namespace fusec {

std::string row_partials(KernelWriter& writer, const RowForm& form, const ExprEmitter::Accumulator& accumulator,
                         const IndexExpr& count) {
  constexpr std::int64_t kBytes = 16;  // of the largest accumulator
  const auto number = std::ranges::find(form.reductions, accumulator.reduction) - form.reductions.begin();
  return writer.workspace(count * kBytes, static_cast<std::uint32_t>(number), accumulator.type + " partial");
}

std::string counts_of_partials(KernelWriter& writer, const RowForm& form, const IndexExpr& count) {
  return writer.workspace(count * 4, static_cast<std::uint32_t>(form.reductions.size()), "float partial");
}

}  // namespace fusec
