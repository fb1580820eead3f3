// Plans pooling of NCHW planes, and resampling: results that are neighbours across the fastest axis read overlapping
// input. A thread has several results of one column, and neighbouring threads have neighbouring columns. An element
// read by several results is loaded once; a window row shared by several results is reduced once.
//
//   y[c, i, j] = max over u, v < 3 of x[c, i + u - 1, j + v - 1]
//
//   results i = 4 t .. 4 t + 3: six rows of three elements instead of twelve; each row's maximum once; only the first
//   row and the last one may lie outside the plane
//
// For an element outside of the plane, the load reads the nearest element inside, so that no load waits for a
// comparison.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "analysis/kernel/loads.h"
#include "ir/graph.h"

namespace fusec {

struct SlidingWindow {
  static constexpr int kThreads = 128;  // per block

  Kernel kernel;  // its pool also has the axes below
  std::uint32_t sliding_axis = 0;
  int steps = 1;                       // results per thread along `sliding_axis`
  std::uint32_t tiles = 0, first = 0;  // axis that numbers the threads, and a thread's first result
  bool whole = true;                   // each thread has all its results
  bool clipped = false;  // the last thread's results are shifted to end at the axis' end: some are computed twice
  std::vector<ExprId> reductions;
  std::map<ExprId, std::uint32_t> slid;  // reduction -> axis of its window rows, each row reduced once
  std::vector<ExprId> loads;             // those that depend on the walked axis or on a reduction axis

  double instructions = 0;  // predicted, summed over all threads

  // A result of the thread (`step`) and an element of each reduction axis (`axes`).
  struct Point {
    std::int64_t step = 0;
    const std::vector<std::uint32_t>* axes = nullptr;
    std::vector<std::int64_t> elements = {};
    std::vector<IndexComparison> known = {};  // comparisons that hold there
  };
};

// The index expression at a point.
IndexExpr index_at(const SlidingWindow& windows, const IndexExpr& e, const SlidingWindow::Point& point);

// A load at a point: a position that is always valid, and the comparisons under which it is the requested element.
struct LoadPosition {
  IndexExpr position;
  std::vector<IndexComparison> guards;  // unproven ones only
  auto operator<=>(const LoadPosition&) const = default;
};
LoadPosition load_position(const SlidingWindow& windows, const Graph& graph, ExprId load,
                           const SlidingWindow::Point& point);
// The unproven comparisons of a condition at a point.
std::vector<IndexComparison> conditions_at(const SlidingWindow& windows, ExprId condition,
                                           const SlidingWindow::Point& point);

// A reduction's points for one result: those of one window row (`row`, an element of the slid axis), or all.
std::vector<SlidingWindow::Point> points_of(const SlidingWindow& windows, ExprId reduction, std::int64_t step,
                                            std::optional<std::int64_t> row);
// The comparisons, independent of the column, under which any element of a row is inside. Otherwise the whole row has
// the reduction's identity value. Nothing if the row is not of this kind.
std::vector<IndexComparison> conditions_of_row(const SlidingWindow& windows, ExprId reduction, std::int64_t step,
                                               std::int64_t row);
// A key of a window row: rows with equal keys have the same reduction result.
std::vector<IndexExpr> row_key(const SlidingWindow& windows, ExprId reduction, std::int64_t step, std::int64_t row);

}  // namespace fusec
