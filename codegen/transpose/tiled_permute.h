// Tensors whose axes change places and of which several are short, odd or both, so that no single axis has lines long
// enough on either side: a block has a box of points, several elements of several axes. In memory, the box is stretches
// of as many of a tensor's last axes as it has whole, and some of the one before; it is chosen so that stretches are
// long in what is read and in what is stored. They are copied to shared memory 16 bytes at a time, as they lie: from
// one line of the box to the next it is as far there as in memory, by the remainder of 16 bytes, so that vectors are
// vectors wherever lines begin; or element by element, to wherever there are fewer bank conflicts. From there a
// result's words are put together element by element, a word (4 bytes, or an element of 8) to a lane, from the sector
// on in which a line of the result begins.
//
//   y[d, b, c, a] = x[a, b, c, d]     float16[5, 240, 464, 5]: a box has all a and d, and 232 c's of one b:
//                                     5 lines of x of 2320 bytes, 5 lines of y of 2320 bytes
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/kernel_source.h"
#include "codegen/transpose/tile_grid.h"
#include "codegen/transpose/tile_thread_map.h"
#include "ir/graph.h"
#include "schedule/target/target.h"

namespace fusec {

struct PermuteLoad {
  ExprId load;
  TileLayout layout;
  std::vector<bool> backwards;  // along which of the box's axes memory goes the other way
  std::vector<int> places;      // bytes of shared memory from one element of each of them to the next, as memory goes
  bool in_vectors = true;       // copied 16 bytes at a time; else by element
  int start = 0;                // in shared memory

  // Whether it depends on a launch's sizes how far beyond a multiple of 16 bytes an axis' place is.
  bool place_varies(std::size_t axis) const {
    return in_vectors && places[axis] != 0 && !layout.steps[axis].is_constant();
  }
};

struct TiledPermute {
  std::vector<TiledAxis> axes;
  TileLayout stored;
  std::vector<PermuteLoad> loads;
  int threads = 256;
  int bytes = 0;             // of shared memory
  double sectors = 0;        // for a point: of all loads and of the result
  double conflicts = 0;      // of banks, for each access, of all loads
  double time_in_lines = 0;  // the same as `time`, were lines stored as wholes
  double time = 0;           // for a point (codegen/access/access_samples.h)
};

// Nothing where loads follow no line, or points are few.
std::optional<TiledPermute> plan_tiled_permute(const Kernel& kernel, const Graph& graph, const Target& target);

KernelSource emit_tiled_permute(const Kernel& kernel, const Graph& graph, const TiledPermute& tiles);

}  // namespace fusec
