// Transposed tensors whose lines begin between vectors of 16 bytes, odd extents above all: a block has a strip of the
// loads' lines, several hundred of them or all, and goes along it. Of every line it copies the next sectors to shared
// memory 16 bytes at a time, as they lie, into a ring: what is in a sector and belongs to the next step's lines of the
// result stays there, so that no sector is read twice. Of the result's lines, a warp's lanes put words (4 bytes, or an
// element of 8) together element by element, of whole sectors alone: a sector is the strip's in which it begins, which
// has a few more lines for that. Sectors in which lines of the result end are stored element by element, with what the
// next line has of them where that is the same block's. A strip's lines may as well be copied as wholes, in one step;
// then they may lie anywhere.
//
//   y[i, j] = x[j, i], 4001 x 2501 halves     384 lines of x and 15 more; steps of 32 halves of each of them, 32 lines
//                                             of y, of each 24 sectors
//
// Lines lie in shared memory so that lanes of a warp find their elements in different banks: groups of lines, whose
// beginnings lie differently in sectors, 32 bytes further each, or lanes that have several of the result's lines.
#pragma once

#include <optional>
#include <vector>

#include "analysis/kernel.h"
#include "analysis/target.h"
#include "codegen/kernel_source.h"
#include "codegen/schedules/transpose.h"
#include "ir/graph.h"

namespace fusec {

// A load's lines in shared memory.
struct StripLines {
  ExprId load;
  int ring = 0;            // bytes of a line, a power of two; 0: all of it is there
  int pitch = 0;           // bytes from one line to the next
  int group = 1, gap = 0;  // so many lines, and so many bytes more behind them
  int apart = 1;           // lines that neighbouring threads copy
  bool evenly = true;      // lines lie as far from one another
  int pieces = 0;          // of 16 bytes, of a line that is copied as a whole
  int start = 0;           // in shared memory

  // Where a line's first place is.
  int slot(int line) const { return line * pitch + line / group * gap; }
};

struct LineStrips {
  std::vector<TiledAxis> tiled;  // the stored axis, the one along which the loads' memory runs
  std::vector<StripLines> loads;
  int step = 0;                // lines of the result at a time
  int more_lines = 0;          // than the strip's
  bool joined = false;         // the result's lines are the strip's as wholes and lie one behind the other
  bool whole_sectors = false;  // each of them is of whole sectors
  int lines_of_warp = 1;       // of the result, at a time
  int apart = 1;               // these, so many lines
  int threads = 256;
  int bytes = 0;    // of shared memory
  double time = 0;  // for a point (codegen/schedules/access_samples.h)
};

// Nothing where vectors of 16 bytes lie on both sides, or where the lines are short.
std::optional<LineStrips> plan_line_strips(const TransposeChoice& choice, const Graph& graph, const Target& target);

KernelSource emit_line_strips(const Kernel& kernel, const Graph& graph, const LineStrips& strips);

}  // namespace fusec
