#include "codegen/reduction/resident_blocks.h"

#include <fmt/format.h>

#include "codegen/expr/index_text.h"

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
  constexpr int kThreads = 256;
  KernelWriter writer(graph, wide);
  const IndexText text{.bounds = form.kernel.pool.bounds(),
                       .wide = wide,
                       .variable = [&](Variable symbol) { return writer.symbol(symbol.id); },
                       .prelude = &writer.prelude};
  const std::string arrived = resident_block_counters(writer, form), count = text.tight(count_of(form));
  writer.line("for ({0} i = threadIdx.x; i < {1}; i += {2}) {3}[i] = 0;", writer.index_type(), count, kThreads,
              arrived);
  KernelSource source = writer.finish(
      {"The next kernel's counters: the part of a row that a block takes, and how many blocks of a row have come."},
      kThreads);
  source.name = "clear_counters";
  source.schedule = {KernelKind::kRowCounters};
  source.unaligned_vectors = true;
  return source;
}

}  // namespace fusec
