#include "codegen/reduction/resident_blocks.h"

#include "codegen/expr/clear_counters.h"

namespace fusec {
namespace {

IndexExpr count_of(const RowForm& form) {
  return simplify(point_count(form.kernel.pool, form.rows) + 1, form.kernel.pool.bounds());
}

}  // namespace

std::string resident_block_counters(KernelWriter& writer, const RowForm& form) {
  return writer.workspace(count_of(form) * 4, static_cast<std::uint32_t>(form.reductions.size()), "unsigned arrived");
}

KernelSource clear_counters(const RowForm& form, const Graph& graph, bool wide) {
  return clear_counters(count_of(form), static_cast<std::uint32_t>(form.reductions.size()), form.kernel.pool.bounds(),
                        graph, wide);
}

}  // namespace fusec
