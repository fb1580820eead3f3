#include "codegen/schedules/column_folds.h"

#include <algorithm>
#include <bit>

#include "analysis/kernel_forms.h"
#include "codegen/emit_expr.h"
#include "codegen/schedules/row_emitter.h"
#include "codegen/schedules/row_vectors.h"

namespace fusec {
namespace {

// What is said of the first launch: all that is made.
Kernel with_columns(Kernel kernel, const ColumnFolds& folds) {
  for (const NodeId n : folds.columns.kernel.nodes)
    if (std::ranges::find(kernel.nodes, n) == kernel.nodes.end()) kernel.nodes.push_back(n);
  std::ranges::sort(kernel.nodes);
  kernel.outputs = folds.rows.kernel.outputs;
  kernel.outputs.resize(kernel.outputs.size() - folds.folded);
  return kernel;
}

// The lines that blocks have left are chunks of the columns' kernel.
RowLayout layout_of_lines(int lines) {
  constexpr unsigned kOfThread = 8, kMost = 32;
  const auto parts = static_cast<int>(std::min(kMost, std::bit_ceil(static_cast<unsigned>(lines) / kOfThread + 1)));
  return {.team = RowTeam::kColumn,
          .threads = kColumnRows * parts,
          .rows = kColumnRows,
          .parts = parts,
          .chunks = std::max(2, lines)};
}

}  // namespace

std::vector<KernelSource> column_folds(const ColumnFolds& folds, const Kernel& original, const Graph& graph,
                                       const Target& target) {
  RowSplit split;
  ColumnFolds ready = folds;
  ready.rows = split_vectors(folds.rows, graph, split);
  if (split.start) {  // a thread's columns are the same of each row
    ready.rows = folds.rows;
    split = {};
  }
  ready.rows.reductions = row_reductions(ready.rows.kernel);
  const IndexExpr threads = point_count(ready.rows.kernel.pool, ready.rows.rows) * folds.layout.parts;
  const bool wide =
      needs_wide_index(ready.rows.kernel, graph, threads) || needs_wide_index(folds.columns.kernel, graph, threads);
  const RowKernel main{.form = ready.rows,
                       .graph = graph,
                       .layout = folds.layout,
                       .split = split,
                       .wide = wide,
                       .shared_bytes = target.shared_bytes_per_block,
                       .folds = &ready};
  if (!keeps_in_registers(main)) return {};
  const RowKernel lines{.form = folds.columns,
                        .graph = graph,
                        .layout = layout_of_lines(folds.layout.blocks),
                        .split = {},
                        .wide = wide,
                        .stage = 1,
                        .shared_bytes = target.shared_bytes_per_block};
  return {emit_rows(main, with_columns(original, folds)), emit_rows(lines, folds.columns.kernel)};
}

}  // namespace fusec
