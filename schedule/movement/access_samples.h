// Samples the memory accesses of some warps of a pointwise kernel before it is emitted. At sample points (symbols at
// their hints, gathered indices random) it evaluates the positions of loads and counts memory sectors and shared-memory
// banks.
//
//   x[j, i], points 0 .. 31 in neighbouring threads: 32 sectors      x[i, j - 1]: 5
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"
#include "schedule/target/target.h"

namespace fusec {

class AccessSamples {
 public:
  AccessSamples(const Kernel& kernel, const Graph& graph);

  std::int64_t points() const { return points_; }
  std::int64_t hint(const IndexExpr& e) const;

  // Sets the point that later queries use: all axes in order, or single axes.
  void move_to(std::int64_t point);
  void set(std::uint32_t axis, std::int64_t value) { axes_.at(axis) = value; }
  std::int64_t value(const IndexExpr& e) const;
  bool holds(ExprId condition);
  // The load's position in elements of its tensor. Nothing if a guard masks the load.
  std::optional<std::int64_t> position(ExprId load);

  // Sample starting points of groups of `count` points, each a multiple of `count`.
  std::vector<std::int64_t> starts(std::int64_t count, int samples) const;

  // Distances in elements, at sample points, between neighbours along an axis.
  std::vector<std::int64_t> distances(ExprId load, std::uint32_t axis);

  // True for a table that is small enough to stay in L1, whatever its access pattern.
  bool is_small_table(ExprId load) const;

  // Sectors per point if each thread of a warp has `width` neighbouring points. `one_access`: one access per thread for
  // all its elements; otherwise one access per element.
  double sectors_per_point(ExprId load, int width, bool one_access);

 private:
  const std::vector<ExprId>& order_of(ExprId condition);

  const Kernel& kernel_;
  const Graph& graph_;
  std::int64_t points_ = 1;
  std::vector<std::pair<std::uint32_t, std::int64_t>> extents_;  // axes of the outputs
  std::vector<std::int64_t> axes_;
  Dependences depends_;
  std::vector<IndexExpr> positions_;  // of loads, computed on first use
  std::vector<bool> known_;
  std::unordered_map<ExprId, std::vector<ExprId>> orders_;  // by condition
  std::vector<std::int64_t> results_;
};

// The largest power of two, in bytes and up to a sector, that always divides the element's address.
int alignment_of(const IndexExpr& position, int element_bits, const Bounds& bounds);

// Predicted time per point of a data-movement kernel, in units of one memory sector. In the time of one sector a
// multiprocessor issues about ten warp instructions, and its shared memory makes two passes. The largest of the three
// terms counts in full, the others in part.
double movement_time(double sectors, double instructions, double passes);

}  // namespace fusec
