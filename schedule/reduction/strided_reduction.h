// A few rows whose elements take turns in memory: what is reduced lies as many elements apart as there are rows.
//
//   sum over i of x[i, c], c of 3       x: 0 1 2 0 1 2 0 1 2 0 1 2 ...
//
// A team of threads takes all of them at once, in vectors as they lie in memory. As many threads work as make the
// elements of all their vectors a multiple of the rows: then what a thread has at a place of its vectors is always of
// one row, and it keeps a partial result for each place.
//
// Of many rows, whose lines of memory are whole vectors, a team takes a strip: so many of them as some lanes' vectors
// hold, several lines at a time.
//
//   sum over i of x[i, c], c of 4096    128 of c to a team of 256 threads, eight lines of 32 vectors at a time
//
// Lines that begin anywhere have vectors that lie as those of memory, a part of the first and last one other lines'. A
// thread takes lines that begin alike, so that a place of its vectors is of one row there as well.
//
//   sum over i of x[i, c], c of 2001    501 of c to a team of 512 threads, eight lines of up to 64 vectors at a time
//
// Rows may have several neighbouring elements of each line, which begin anywhere: a strip is whole rows all the same,
// and what a place of a thread's vectors has is of one row in every line.
//
//   sum over n, p of x[n, c, p], p of 49    16 of c to a team of 196 threads, two lines of 98 vectors at a time
//                                p of 3249  one of c to a team of 512 threads, up to 407 vectors of a line
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

inline constexpr int kMaxRegisterWords = 64;  // of a thread, between its loops

struct StridedReduction {
  RowForm form;                      // the rows' axes that lie one within the other are one
  std::uint32_t inner = 0;           // the axis that says which of them
  std::vector<std::uint32_t> outer;  // the other rows' axes
  int rows = 2;                      // of a team
  IndexExpr line_stride = 2;         // elements from one of a row to the next, or from one such piece to the next
  int elements_per_line = 1;         // elements of a row that are side by side in each line
  bool in_strips = false;            // rows of a team are a strip of the line
  bool unaligned = false;            // strips of lines that begin anywhere
  bool line_broadcasts = false;      // something is read of each line, the same for its rows
  int width = 1;                     // elements of a vector
  int group_threads = 256;           // threads that take the rows at one place of the outer axes
  int groups_per_block = 1;          // of a block
  int parts = 256;                   // threads of a team that work
  int chunks = 1;                    // blocks that share what a team has to do and leave partial results
  bool resident_blocks = false;      // which wait for one another, rather than for the next kernel
  int register_vectors = 0;          // vectors of a thread; 0: not known, or too many
  std::vector<ExprId> loads;         // that read one element after the other
  std::vector<ExprId> line_invariant_loads;  // that read so what is the same for all lines
  // Of what no thread keeps: moments, or a maximum and the exponentials below it, of which both come of one pass over
  // it; of what a cohort keeps, the latter come of one meeting.
  std::optional<RowOnePass> one_pass;

  int threads() const { return group_threads * groups_per_block; }
  bool of_warps() const { return in_strips && group_threads == 32; }  // which have all lines of their strips
  bool in_one_kernel() const { return chunks == 1 || resident_blocks; }
  int columns() const { return rows * elements_per_line; }  // elements of a line that a team takes
  // Of a strip: threads that have vectors of one line.
  int lanes() const { return (columns() + (unaligned ? 2 * width - 2 : 0)) / width; }
  IndexExpr strips() const { return in_strips ? ceil_div(line_stride, columns()) : IndexExpr(1); }
  IndexExpr lines() const { return form.kernel.pool.extent(form.kernel.pool[form.reductions[0]].axes[0]); }
};

// Nothing where rows do not lie so.
std::optional<StridedReduction> strided_reduction(const RowForm& form, const Graph& graph, const Target& target);

// Kernels that take such rows, one after the other; of a cohort, what clears its counters besides.
int launches_of(const StridedReduction& plan);

// Vectors of each thread that a block's share of its rows is at least: joining what threads have takes as much as some,
// of what one pass makes as much as more.
int vectors_of_chunk(const StridedReduction& plan);

// Registers for what a thread reads in a turn.
int words_of_vectors(const StridedReduction& plan);

// Has shared memory room for what so many threads of a strip, or of rows that take turns, join?
bool has_room_for_results(const StridedReduction& plan, int threads);

std::string name_of(const StridedReduction& plan);

}  // namespace fusec
