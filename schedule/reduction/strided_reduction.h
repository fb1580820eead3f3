// Plans reductions over strided rows: the elements of a few rows interleave in memory, so a row's stride is the number
// of rows.
//
//   sum over i of x[i, c], c of 3       x: 0 1 2 0 1 2 0 1 2 0 1 2 ...
//
// A group of threads takes all rows at once, in vectors of contiguous memory. The number of working threads makes the
// elements of all their vectors a multiple of the rows. Each lane of a thread's vectors then always belongs to one row,
// and the thread keeps a partial result per lane.
//
// For many rows with whole vectors per line, a group takes a strip: the columns of a few lanes' vectors, several lines
// at a time.
//
//   sum over i of x[i, c], c of 4096    128 of c to a group of 256 threads, eight lines of 32 vectors at a time
//
// Unaligned lines use vectors aligned in memory; parts of the first and last vector belong to neighbouring lines. A
// thread takes lines with equal alignment, so that each lane still belongs to one row.
//
//   sum over i of x[i, c], c of 2001    501 of c to a group of 512 threads, eight lines of up to 64 vectors at a time
//
// A row may have several neighbouring elements per line, at any alignment. A strip then still has whole rows, and each
// lane belongs to one row in every line.
//
//   sum over n, p of x[n, c, p], p of 49    16 of c to a group of 196 threads, two lines of 98 vectors at a time
//                                p of 3249  one of c to a group of 512 threads, up to 407 vectors of a line
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "schedule/reduction/row_form.h"
#include "schedule/reduction/row_one_pass.h"
#include "schedule/target/target.h"

namespace fusec {

inline constexpr int kMaxRegisterWords = 64;  // kept by a thread between its loops

struct StridedReduction {
  RowForm form;                      // nested axes of rows are merged
  std::uint32_t inner = 0;           // the interleaved axis of rows
  std::vector<std::uint32_t> outer;  // the other axes of rows
  int rows = 2;                      // per group
  IndexExpr line_stride = 2;         // elements from one line to the next
  int elements_per_line = 1;         // contiguous elements of a row in each line
  bool in_strips = false;            // a group's rows are a strip of the line
  bool unaligned = false;            // strips of unaligned lines
  bool line_broadcasts = false;      // an operand has one value per line, the same for its rows
  int width = 1;                     // elements per vector
  int group_threads = 256;           // threads that take the rows at one index of the outer axes
  int groups_per_block = 1;
  int parts = 256;               // threads of a group that work
  int chunks = 1;                // blocks that share a group's work and store partial results
  bool resident_blocks = false;  // the chunks are co-resident and wait for each other, instead of a next kernel
  int register_vectors = 0;      // vectors kept by a thread; 0: unknown or too many
  std::vector<ExprId> loads;     // contiguous loads
  std::vector<ExprId> line_invariant_loads;  // contiguous loads of operands that are the same for all lines
  // The reductions that one pass makes together if nothing is kept: moments, or online softmax.
  std::optional<RowOnePass> one_pass;

  int threads() const { return group_threads * groups_per_block; }
  bool has_warp_per_strip() const { return in_strips && group_threads == 32; }  // a warp has all lines of its strip
  bool in_one_kernel() const { return chunks == 1 || resident_blocks; }
  int columns() const { return rows * elements_per_line; }  // elements of a line per group
  // Strips: threads with vectors of one line.
  int lanes() const { return (columns() + (unaligned ? 2 * width - 2 : 0)) / width; }
  IndexExpr strips() const { return in_strips ? ceil_div(line_stride, columns()) : IndexExpr(1); }
  IndexExpr lines() const { return form.kernel.pool.extent(form.kernel.pool[form.reductions[0]].axes[0]); }
};

// Nothing if rows are not interleaved.
std::optional<StridedReduction> strided_reduction(const RowForm& form, const Graph& graph, const Target& target);

// Number of kernels, including the one that clears the counters of co-resident blocks.
int launches_of(const StridedReduction& plan);

// Registers (32-bit words) for the operands of one iteration.
int words_of_vectors(const StridedReduction& plan);

std::string name_of(const StridedReduction& plan);

}  // namespace fusec
