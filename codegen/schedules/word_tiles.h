// Transposed tensors whose lines begin between vectors of 16 bytes, odd extents above all: a block copies a tile of
// each load to shared memory and the result from there, and on both sides a warp has a line whose words (4 bytes, or an
// element of 8) its lanes read or write as they lie, from the sector on in which the line begins. The tile's elements
// lie one by one, in lines of an odd number of them, so that neither side has bank conflicts wherever its lines begin.
// What else is in the first word of a load's line has places of its own; words of the result that two tiles share are
// the former's, which has a few lines more for them.
//
//   y[i, j] = x[j, i], 773 x 1021 halves     177 lines of x, of each 112 halves in 2 * 32 words; a word's halves go to
//                                            tile[i * 177 + j], tile[(i + 1) * 177 + j]
#pragma once

#include <optional>
#include <vector>

#include "analysis/kernel.h"
#include "codegen/kernel_source.h"
#include "codegen/schedules/transpose.h"
#include "ir/graph.h"

namespace fusec {

struct WordTiles {
  std::vector<TiledAxis> tiled;  // the stored axis, the one along which the loads' memory runs
  std::vector<ExprId> loads;     // that go through the tile
  int pitch = 0;                 // elements of the tile's lines
  int bytes = 0;                 // of all tiles
  double time = 0;               // for a point (codegen/schedules/access_samples.h)
};

// Nothing where vectors of 16 bytes lie on both sides, or where the lines are short.
std::optional<WordTiles> plan_word_tiles(const TransposeChoice& choice, const Graph& graph);

KernelSource emit_word_tiles(const Kernel& kernel, const Graph& graph, const WordTiles& tiles);

}  // namespace fusec
