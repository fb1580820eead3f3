#include "codegen/reduction/cross_row_reduction.h"

#include <algorithm>
#include <bit>

#include "codegen/expr/emit_expr.h"
#include "codegen/reduction/row_emitter.h"
#include "codegen/reduction/row_vectors.h"
#include "schedule/kernel_forms.h"

namespace fusec {
namespace {

// The kernel for the first launch's comment: it names everything that both launches compute.
Kernel with_columns(Kernel kernel, const CrossRowReduction& cross_row) {
  for (const NodeId n : cross_row.columns.kernel.nodes)
    if (std::ranges::find(kernel.nodes, n) == kernel.nodes.end()) kernel.nodes.push_back(n);
  std::ranges::sort(kernel.nodes);
  kernel.outputs = cross_row.rows.kernel.outputs;
  kernel.outputs.resize(kernel.outputs.size() - cross_row.folded);
  return kernel;
}

// The layout of the columns' kernel, with the blocks' lines as chunks.
RowLayout layout_of_lines(int lines) {
  constexpr unsigned kOfThread = 8, kMost = 32;
  const auto parts = static_cast<int>(std::min(kMost, std::bit_ceil(static_cast<unsigned>(lines) / kOfThread + 1)));
  return {.reduction_group = ReductionGroup::kColumn,
          .threads = kColumnRows * parts,
          .rows = kColumnRows,
          .parts = parts,
          .chunks = std::max(2, lines),
          .fixed_chunks = true};
}

}  // namespace

std::vector<KernelSource> cross_row_reduction(const CrossRowReduction& cross_row, const Kernel& original,
                                              const Graph& graph, const Target& target) {
  RowSplit split;
  CrossRowReduction ready = cross_row;
  ready.rows = split_vectors(cross_row.rows, graph, split);
  if (split.start) {  // a thread's columns are the same in each row
    ready.rows = cross_row.rows;
    split = {};
  }
  ready.rows.reductions = row_reductions(ready.rows.kernel);
  const IndexExpr threads = point_count(ready.rows.kernel.pool, ready.rows.rows) * cross_row.layout.parts;
  const bool wide =
      needs_wide_index(ready.rows.kernel, graph, threads) || needs_wide_index(cross_row.columns.kernel, graph, threads);
  const RowKernel main{.form = ready.rows,
                       .graph = graph,
                       .layout = cross_row.layout,
                       .split = split,
                       .wide = wide,
                       .shared_bytes = target.shared_bytes_per_block,
                       .cross_row = &ready};
  if (!keeps_in_registers(main)) return {};
  const RowKernel lines{.form = cross_row.columns,
                        .graph = graph,
                        .layout = layout_of_lines(cross_row.layout.blocks),
                        .split = {},
                        .wide = wide,
                        .stage = 1,
                        .shared_bytes = target.shared_bytes_per_block};
  return {emit_rows(main, with_columns(original, cross_row)), emit_rows(lines, cross_row.columns.kernel)};
}

}  // namespace fusec
