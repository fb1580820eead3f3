// A kernel with reductions as rows and columns. The output axes on which its reductions depend number the rows; the
// others are the columns of a row. Each reduction runs over one merged axis if its accesses allow, and reductions of
// equal extent share their axis.
//
//   softmax  y[b, q, k], max and sum over k   ->  rows b, q; columns k
//   group norm y[n, c, h, w], mean over c // 8 ->  c is split in two: rows n, c1; columns c2, h, w
#pragma once

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"

namespace fusec {

struct RowForm {
  Kernel kernel;  // output axes: rows, then columns
  std::vector<std::uint32_t> rows, columns;
  std::vector<ExprId> reductions;  // those that depend on rows alone
  // Reductions of segments of a row (schedule/reduction/row_segments), and the columns per segment; otherwise empty and
  // 0.
  std::vector<ExprId> segments = {};
  std::int64_t segment = 0;
  int elements_per_column = 1;  // elements of a row per column index, after folding (schedule/reduction/row_folding)
  // Outputs with one value per element that depend on no reduction, split off the kernel's outputs
  // (schedule/reduction/extra_outputs).
  std::vector<KernelOutput> extra_outputs = {};
};

// The columns on which the output does not depend. It is stored where they are 0.
std::vector<std::uint32_t> columns_without(const RowForm& form, const KernelOutput& output);

// Nothing if no reduction depends on output axes alone.
std::optional<RowForm> row_form(const Kernel& kernel, const Graph& graph);

// Merges nested axes of rows into one.
RowForm with_rows_merged(const RowForm& form, const Graph& graph);

// The nodes below the roots, without those inside row reductions and those that only `known` nodes need.
std::vector<ExprId> outside_reductions(const RowForm& form, const std::vector<ExprId>& roots,
                                       const std::function<bool(ExprId)>& known = nullptr);

// Instructions in the text per element of the roots, outside of reductions (operation_work).
int code_of_element(const RowForm& form, const std::vector<ExprId>& roots,
                    const std::function<bool(ExprId)>& known = nullptr);

// The sorted axes of all loops over a row, and their common length. Nothing unless each loop has one axis of this
// constant length.
struct RowAxes {
  std::vector<std::uint32_t> axes;
  std::int64_t length = 0;
};
std::optional<RowAxes> axes_of_one_length(const RowForm& form);

// Limit of instructions in a kernel's unrolled loops. NVRTC compiles so many in less than 400 ms.
inline constexpr int kMaxUnrolledInstructions = 2400;

// Unroll factor of a loop that is not fully unrolled. More than one iteration keeps several loads in flight, unless an
// iteration, or one of all loops together, has too much code.
int unroll_factor(int code_of_iteration, int code_of_all = 0);

// True if the output has one element per row, not one per column.
bool is_of_rows(const RowForm& form, const KernelOutput& output);

// The outputs with one element per row (`row`), or those with one per column.
using RowOutputs = std::vector<const KernelOutput*>;
RowOutputs outputs_of(const RowForm& form, bool row);
std::vector<ExprId> roots_of(const RowOutputs& outputs);

// Elements per vector for elements of `bits` bits: 16 bytes, but at most eight elements.
constexpr int elements_of_vector(int bits) {
  return std::clamp(128 / bits, 1, 8);
}

// True if a lane takes a whole row as one vector or a few, for contiguous rows. The number of vectors is a small power
// of two, or small and odd, so that a warp's accesses have no gaps. Five vectors are allowed for narrow elements only;
// for others a shared-memory tile needs fewer instructions.
constexpr bool fits_one_lane(std::int64_t length, int widest_bits) {
  constexpr std::int64_t kFew = 4, kFewNarrow = 5;
  const std::int64_t width = elements_of_vector(widest_bits), vectors = length / width;
  if (std::has_single_bit(static_cast<std::uint64_t>(length))) return vectors <= kFew;
  return length % width == 0 && vectors % 2 == 1 && vectors <= (width == elements_of_vector(8) ? kFewNarrow : kFew);
}

// True if a value of this type has 8 bytes.
bool is_wide(ScalarType type);

// Bytes of a partial result: its value, plus the index for argmax and argmin.
int bytes_of_partial(const RowForm& form, ExprId reduction);

// Bytes of the partial results that have shared memory at the same time. Each kind of combination has its own memory,
// up to `times_each` times.
int bytes_of_partials(const RowForm& form, int times_each);

// The length of the longest chain of reductions that depend on each other.
int stage_count(const RowForm& form);

// Reductions made by one loop over the row: same axes and same stage.
struct ReductionLoop {
  int stage = 0;
  std::vector<std::uint32_t> axes;
  std::vector<ExprId> reductions = {};
  std::vector<ExprId> bodies(const ExprPool& pool) const;
};
// In execution order.
std::vector<ReductionLoop> reduction_loops(const RowForm& form);

// A loop over a row: its axes (the lane axis last if `width` > 1) and the expressions computed in it.
struct RowLoop {
  std::vector<std::uint32_t> axes;
  int width = 1;
  std::vector<ExprId> roots;
  std::optional<IndexExpr> vectors = std::nullopt;  // upper bound per row, if the axes number the vectors of all rows
  bool joins = false;  // loads concatenated operands as one vector (codegen/access/concat_loads)
};
// The loops of all reductions and of the columns, in execution order.
std::vector<RowLoop> loops_over_row(const RowForm& form);

}  // namespace fusec
