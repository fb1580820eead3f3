// What some warps of a pointwise kernel would ask of memory, counted before there is a kernel: positions of loads at
// points here and there (symbols at their hints, looked-up values anywhere), the sectors that they touch and the banks.
//
//   x[j, i], points 0 .. 31 by neighbouring threads: 32 sectors      x[i, j - 1]: 5
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

  // From here on, questions are about this point, of all axes in order, or about these values of axes.
  void move_to(std::int64_t point);
  void set(std::uint32_t axis, std::int64_t value) { axes_.at(axis) = value; }
  std::int64_t value(const IndexExpr& e) const;
  bool holds(ExprId condition);
  // In elements of its tensor; nothing where a guard says that nothing is read.
  std::optional<std::int64_t> position(ExprId load);

  // Points at which `count` ones that are to be looked at together begin, multiples of that.
  std::vector<std::int64_t> starts(std::int64_t count, int samples) const;

  // How far apart, here and there, the elements of neighbours along an axis lie.
  std::vector<std::int64_t> distances(ExprId load, std::uint32_t axis);

  // Of a table that stays in the first cache, however it is read.
  bool is_small_table(ExprId load) const;

  // Sectors for a point, where each thread of a warp has `width` neighbouring points: elements by themselves, or all of
  // a thread's by one access.
  double sectors_per_point(ExprId load, int width, bool together);

 private:
  struct Condition {
    ExprId id;
    std::vector<ExprId> order;
  };
  const std::vector<ExprId>& order_of(ExprId condition);

  const Kernel& kernel_;
  const Graph& graph_;
  std::int64_t points_ = 1;
  std::vector<std::pair<std::uint32_t, std::int64_t>> extents_;  // of the outputs' axes
  std::vector<std::int64_t> axes_;
  std::vector<std::vector<std::uint32_t>> depends_;
  std::vector<IndexExpr> positions_;  // of loads, once asked for
  std::vector<bool> known_;
  std::vector<Condition> conditions_;
  std::vector<std::int64_t> results_;
};

// Sectors that a stretch of so many bytes touches on average, one that begins at some multiple of `aligned`.
double sectors_of_span(std::int64_t bytes, int aligned);
// Bytes, a power of two up to a sector, that an element's place is always a multiple of.
int alignment_of(const IndexExpr& position, int element_bits, const Bounds& bounds);

// What a point of a kernel that moves things takes, in the time of a sector of memory: of instructions of a warp a
// multiprocessor issues about ten in the time that its share of memory takes for a sector, and its shared memory has
// two passes. What takes longest counts, and of the others a part.
double movement_time(double sectors, double instructions, double passes);

// Distinct ones of places in bytes, by what has `bytes`, a power of two.
std::size_t distinct(std::vector<std::int64_t> places, std::int64_t bytes);

}  // namespace fusec
