// What a thread's neighbouring points, its lanes, read of a tensor, where that is no vector as it lies there: elements
// some steps apart, backwards, each several times, or a row that begins within 16 bytes. They are a window, consecutive
// elements from `first` on, of which each lane takes one; a window is read 16 bytes at a time, together with those of
// the other threads of the warp.
//
//   gate[i, j] = x[i, 2 j]         lanes j = 8 g + e:   16 elements from 16 g on, lane e takes element 2 e
//   y[i, j] = x[i, j - 1]          8 elements from 8 g - 1 on, read as two vectors, the second one is a neighbour's
//   first
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"

namespace fusec {

// An axis of which a thread has all elements.
struct LaneAxis {
  std::uint32_t axis;
  int count;
};

struct UnalignedLoad {
  ExprId load;
  IndexExpr first;         // position of its first element; may be outside of the tensor where the load is guarded
  IndexExpr element;       // which one a lane takes, over lanes' axes alone
  int words = 4;           // of 32 bits
  bool together = true;    // read by the warp's threads together; else each reads its own
  bool aligned = false;    // begins at a vector of the tensor
  bool whole = false;      // the tensor consists of whole vectors
  bool backwards = false;  // the next group's window lies before this one
  bool stream = false;     // past the caches
};

// Elements at `position` for all of a thread's lanes; nothing where their distances are not the same in every thread,
// or where they lie too far apart. `group`: the axis along which neighbouring threads go on.
std::optional<UnalignedLoad> find_unaligned_load(const Kernel& kernel, const Graph& graph, ExprId load,
                                                 const IndexExpr& position, const std::vector<LaneAxis>& lanes,
                                                 std::uint32_t group_axis);

// Vectors of 16 bytes that the window takes.
inline int vectors_of(const UnalignedLoad& window) {
  return window.words / 4;
}

}  // namespace fusec
