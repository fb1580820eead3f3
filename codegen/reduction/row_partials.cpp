#include "codegen/reduction/row_partials.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/expr/kernel_writer.h"

namespace fusec {

std::string row_partials(KernelWriter& writer, const RowForm& form, const ExprEmitter::Accumulator& accumulator,
                         const IndexExpr& count) {
  const ExprPool& pool = form.kernel.pool;
  const bool wide = is_wide(pool[pool[accumulator.reduction].args[0]].type);
  const std::int64_t bytes = accumulator.extreme ? 16 : wide ? 8 : 4;
  const auto number = std::ranges::find(form.reductions, accumulator.reduction) - form.reductions.begin();
  return writer.workspace(count * bytes, static_cast<std::uint32_t>(number), accumulator.type + " partial");
}

std::string counts_of_partials(KernelWriter& writer, const RowForm& form, const IndexExpr& count) {
  return writer.workspace(count * 4, static_cast<std::uint32_t>(form.reductions.size()), "float partial");
}

IndexExpr chunks_of_launch(int chunks, const IndexExpr& length, std::int64_t fewest, const IndexExpr& groups,
                           const Bounds& bounds) {
  const std::int64_t of_chunk = value_at_hint(length, bounds.symbols) / chunks;
  const IndexExpr wanted = ceil_div(length, std::clamp<std::int64_t>(of_chunk, 1, fewest));
  const std::int64_t expected = value_at_hint(groups, bounds.symbols) * chunks;
  return simplify(min(chunks, max(1, min(wanted, ceil_div(expected, max(1, groups))))), bounds);
}

std::string running_moments(const std::string& type, int scale) {
  return fmt::format("WelfordMoments<{}, {}>", type, scale);
}

std::string shifted_moments(const std::string& type, int places, int scale) {
  return fmt::format("ShiftedMoments<{}, {}, {}>", places, type, scale);
}

PassResults results_of_exponentials(const std::string& running) {
  return {running + ".greatest", running + ".sum * ({})", running + ".shift()"};
}

PassResults results_of_moments(const std::string& moments, const std::string& about) {
  return {moments + ".sum", fmt::format("{0}.squares + {0}.count * ({{}})", moments),
          about.empty() ? moments + ".mean" : fmt::format("({} + {}.mean)", about, moments)};
}

std::string divisor_of_sum(const std::string& count, const std::string& type, int scale) {
  return scale == 0 ? count : fmt::format("({} * {}::kUnit)", count, running_moments(type, scale));
}

}  // namespace fusec
