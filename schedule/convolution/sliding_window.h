// Results whose neighbours across the fastest axis read much of the same: pooling of planes that lie row by row, and
// resampling. A thread has several results of one column, below one another, and neighbouring threads have neighbouring
// columns. What several of the results read is read once; a row of a window that several of them have is reduced once.
//
//   y[c, i, j] = max over u, v < 3 of x[c, i + u - 1, j + v - 1]
//
//   results i = 4 t .. 4 t + 3: six rows of three elements instead of twelve; each row's maximum once; only the first
//   row and the last one may lie outside the plane
//
// Where an element may lie outside, the nearest one inside is read in its place: no access waits for a comparison.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "analysis/kernel/loads.h"
#include "ir/graph.h"
#include "schedule/target/target.h"

namespace fusec {

struct SlidingWindow {
  static constexpr int kThreads = 128;  // of a block

  Kernel kernel;  // whose pool has the axes below, too
  std::uint32_t walked = 0;
  int steps = 1;                       // neighbours along it that a thread has
  std::uint32_t tiles = 0, first = 0;  // which thread's they are, and the first of them
  bool whole = true;                   // each thread has all of them
  bool clipped = false;                // the last ones are neighbours of the axis' end: some are made twice
  std::vector<ExprId> reductions;
  std::map<ExprId, std::uint32_t> slid;  // of a reduction: the axis of its windows' rows, each reduced by itself
  std::vector<ExprId> loads;             // that depend on the walked axis or on a reduction's

  double instructions = 0;  // as predicted, of all threads

  // Which of the results, and an element of each axis of a reduction (`axes`).
  struct Point {
    std::int64_t step = 0;
    const std::vector<std::uint32_t>* axes = nullptr;
    std::vector<std::int64_t> elements = {};
    std::vector<IndexComparison> known = {};  // what holds there
  };
};

// Nothing where threads with one result each do no more.
std::optional<SlidingWindow> find_sliding_window(const Kernel& kernel, const Graph& graph, const Target& target);

// An index at a point.
IndexExpr index_at(const SlidingWindow& windows, const IndexExpr& e, const SlidingWindow::Point& point);

// What a load reads at a point: an element that is there in any case, and what must hold for it to be the one.
struct PlacedLoad {
  IndexExpr position;
  std::vector<IndexComparison> guards;  // of which none is proven
  auto operator<=>(const PlacedLoad&) const = default;
};
PlacedLoad placed_load(const SlidingWindow& windows, const Graph& graph, ExprId load,
                       const SlidingWindow::Point& point);
// The comparisons of a condition at a point that are not proven.
std::vector<IndexComparison> conditions_at(const SlidingWindow& windows, ExprId condition,
                                           const SlidingWindow::Point& point);

// A reduction's points for one of the results, those of one row of the window or all; `row` is an element of the axis
// that is slid.
std::vector<SlidingWindow::Point> points_of(const SlidingWindow& windows, ExprId reduction, std::int64_t step,
                                            std::optional<std::int64_t> row);
// What must hold for any element of a row to be there, which no column says. Elsewhere all of the row is what the
// reduction begins with; nothing where that is not so.
std::vector<IndexComparison> conditions_of_row(const SlidingWindow& windows, ExprId reduction, std::int64_t step,
                                               std::int64_t row);
// What tells rows of windows apart: equal ones are reduced to the same.
std::vector<IndexExpr> row_key(const SlidingWindow& windows, ExprId reduction, std::int64_t step, std::int64_t row);

}  // namespace fusec
