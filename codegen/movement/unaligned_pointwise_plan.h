// What of a pointwise kernel is read in windows (codegen/access/unaligned_load_text), and how its points go to threads:
// 16 bytes of the results each, its lanes.
//
//   y[i, j] = x[i, j - 1] + b[j], rows of 4095:   lanes 8 g + e of the results as they lie; of x a window from 8 g - 1
//                                                 on, of b one for the row and one for the row behind it
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/access/unaligned_load_text.h"
#include "ir/graph.h"

namespace fusec {

// A kernel with lanes, and what of it is read in windows.
struct UnalignedPlan {
  struct Read {
    UnalignedLoad window;
    bool next_row = false;    // lanes of the next row have a window of their own
    bool all_planes = false;  // it is of a thread's lanes of all planes
  };

  Kernel kernel;  // whose last axis is the lane
  int width = 1;
  bool crosses_rows = false;         // lanes may be of two rows
  std::vector<std::uint32_t> outer;  // axes before the group's, or those of the row
  std::uint32_t column = 0;          // where lanes cross: the axis along a row
  std::uint32_t group = 0, lane = 0;
  IndexExpr groups = 0, total = 0;  // of all points; `total`: elements that there are, where the last group is none
  IndexExpr row_length = 0;
  std::optional<std::uint32_t> plane;  // an axis of which a thread has all elements, too
  int planes = 1;
  std::vector<Read> reads;
  std::vector<IndexExpr> stores;  // of each output, where its lanes begin
  std::vector<int> together;      // vectors that a thread's lanes of all planes are, stored together; 0: each by itself
  int scalar_loads = 0;           // accesses of single elements
  std::int64_t cost = 0;          // accesses for `width` points of each plane
  bool only_small_tables = true;  // what is read by single elements is small
};

// With `width` lanes; nothing where that cannot be.
std::optional<UnalignedPlan> plan_unaligned_loads(const Kernel& merged, const Graph& graph, int width);

// The same where the output axis `plane` is short: a thread has lanes of all its elements. Nothing where no access is
// the better for it.
std::optional<UnalignedPlan> plan_unaligned_planes(const Kernel& merged, const Graph& graph, int width,
                                                   std::size_t plane);

}  // namespace fusec
