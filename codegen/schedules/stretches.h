// Pointwise kernels whose operands lie otherwise than their results, though not far: what neighbouring points read of
// such a tensor is one stretch of it, or nearly so. A block copies that to shared memory, 16 bytes at a time, and takes
// its elements from there. Where the stretch begins and ends is found by the block itself: whatever the indices are
// made of, remainders, minima, looked-up columns. A block that finds it too long reads its elements where they lie.
//
//   y[i, j] = x[i, reflected(j - 3)]     points 1024 g .. 1024 g + 1023   <-   x's elements around 1018 g
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/kernel.h"
#include "analysis/target.h"
#include "codegen/kernel_source.h"
#include "ir/graph.h"

namespace fusec {

// What a block reads of one tensor in one piece.
struct TensorStretch {
  // How its threads take their elements of it without bank conflicts.
  enum class Way {
    kAsTheyLie,  // neighbouring threads want neighbouring words
    kInParts,    // a warp's words that lie 32, 64 or 96 behind its first are read by accesses of their own
    kApart,      // a word is left out behind every 32
    kNear,       // a warp whose threads want what lies more than 32 words apart reads it in memory
  };
  std::vector<ExprId> loads;
  int most = 0;  // vectors of 16 bytes; longer ones are not copied
  Way way = Way::kAsTheyLie;
  std::int64_t start = 0;  // in shared memory, in bytes
};

struct StretchPlan {
  std::vector<TensorStretch> stretches;
  int threads = 256;
  int each = 4;                 // points of a thread, a block's threads apart
  std::int64_t ends_start = 0;  // in shared memory, in bytes: where each stretch's first and last elements are found
  double sectors = 0;           // of all loads, for a point, as sampled

  // A first and a last one of each warp.
  std::int64_t ends_bytes() const { return std::int64_t{2} * 4 * (threads / 32); }
  std::int64_t shared_bytes() const { return ends_start + ends_bytes() * static_cast<std::int64_t>(stretches.size()); }
};

// Nothing where points are few or indices wide. The plan has no stretches where no load is the better for one;
// neighbouring threads then read neighbouring points' elements as they lie. `kernel` has no reductions; its axes are
// merged.
std::optional<StretchPlan> plan_stretches(const Kernel& kernel, const Graph& graph, const Target& target);

KernelSource emit_stretches(const Kernel& kernel, const Graph& graph, const Target& target, const StretchPlan& plan);

}  // namespace fusec
