// Pointwise kernels some of whose loads run along another axis than what is stored: which loads those are, and how a
// block takes them through shared memory, so that both sides are read and written along memory.
//
//   y[i, j] = x[j, i]      a block's tile:  x's lines j0 .. j0 + 31, 32 floats along i each   ->  words in shared
//   memory
//                                           y's lines i0 .. i0 + 31, 4 neighbours j a thread  <-  4 words
//
// A word of the tile holds neighbours along the axis that is stored (two of 16 bits, four of 8 bits); where lines of
// words lie is chosen by trying, so that neither side has bank conflicts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/transpose/tile_grid.h"
#include "ir/graph.h"

namespace fusec {

// How the items of a tile go round: `lanes` neighbouring threads take neighbours along the fast direction, the next
// threads the others, then the next `lanes` of the fast direction.
struct ItemOrder {
  int fast = 1;   // items along the fast direction
  int lanes = 1;  // divides fast
  int rest = 1;   // items along all others
  int real = 0;   // of the fast direction, where not all are: so many lanes are busy that no warp has two lines
  int count() const { return fast * rest; }
};

// A load that goes through the tile.
struct StagedLoad {
  ExprId load;                          // of the kernel
  std::size_t along;                    // which of the tiled axes memory runs along
  std::vector<std::size_t> others;      // tiled axes it depends on besides, without the stored one
  bool linear = true;                   // one element after the other along that axis; else nearly so
  int width = 1;                        // elements of an access
  int bits = 32;                        // of an element
  int packed = 1;                       // elements of a word, neighbours along the stored axis
  int planes = 1;                       // words of an element, each in a plane of its own
  ItemOrder items;                      // fast: accesses along a line; rest: lines
  int pitch = 0, unit = 0, other = 0;   // words from a word to the next one along the stored axis, from one thread's to
                                        // the next one's, from one element of another tiled axis to the next
  int every = 32, spread = 0;           // along a line, `spread` words are left out behind `every` others
  int lines = 0, gap = 0;               // behind so many lines, `gap` words are left out; 0: never
  int plane = 0, words = 0, start = 0;  // of a plane, of all; where in shared memory
};

struct TransposeTiles {
  std::uint32_t stored;          // the axis that stores run along, the outputs' last
  std::vector<TiledAxis> tiled;  // the stored one first
  int vector = 1;                // elements of the stored axis that a thread makes
  int unit = 1;                  // words of the tile that it takes for them
  ItemOrder items;               // fast: threads along the stored axis
  std::vector<StagedLoad> loads;
  int words = 0;  // of shared memory
  int threads = 256;
  int conflicts = 0;        // of banks, in some warps
  bool few_points = false;  // of a tile: blocks of few elements may be dearer than lines that are read in parts
};

// Nothing where no load has to go that way.
std::optional<TransposeTiles> plan_transpose(const Kernel& kernel, const Graph& graph);

// For a point, of what goes through the tile and of the results (codegen/access/access_samples.h).
double transpose_time(const TransposeTiles& tiles, const Kernel& kernel, const Graph& graph);

// Where the word at (line of words along the stored axis, place along memory's axis, other) of a staged load is.
int word_at(const StagedLoad& load, int unit_words, int line, int place, int other);

}  // namespace fusec
