// Pointwise kernels each of whose rows of points looks up elements of one row of a tensor (index_select and gather
// along the last axis): neighbouring points' elements lie anywhere in it. A block copies some rows to shared memory, 16
// bytes at a time, and its points pick theirs there. What says which ones, if it is the same for all rows, is read once
// for all rows of a block.
//
//   y[i, j] = x[i, ids[j]], rows of 1024    a block's rows 8 g .. 8 g + 7:   picks[j] = ids[j],  x's elements from
//                                           8192 g on,  then y[i, j] = x_row[picks[j]]
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/kernel.h"
#include "analysis/target.h"
#include "codegen/kernel_source.h"
#include "ir/graph.h"

namespace fusec {

struct PickedRows {
  // What a row of points picks from.
  struct Source {
    ExprId load;
    ExprId value;            // which element a point takes
    IndexExpr first;         // position of element 0, over all axes but the last
    int length;              // elements
    int vectors;             // of 16 bytes that they may lie in
    bool aligned;            // they begin at one
    std::int64_t start = 0;  // in shared memory, in bytes: of the vectors of all rows
  };
  // Values that are the same for all rows, in shared memory.
  struct Picks {
    ExprId value;
    std::int64_t start = 0;
  };
  std::vector<Source> sources;
  std::vector<Picks> picks;
  int columns = 1;  // points of a row
  int width = 1;    // neighbours that a thread makes and stores together
  int rows = 1;     // of a block
  int threads = 256;
  std::int64_t firsts_start = 0, shared_bytes = 0;  // firsts: where each source of each row begins in its tensor
  double sectors = 0;                               // of all loads, for a point
};

// Nothing where no load is like that, where rows are longer than shared memory, or few. `kernel` has no reductions; its
// axes are merged.
std::optional<PickedRows> plan_picked_rows(const Kernel& kernel, const Graph& graph, const Target& target);

KernelSource emit_picked_rows(const Kernel& kernel, const Graph& graph, const Target& target, const PickedRows& plan);

}  // namespace fusec
