// The tile of a staged copy (schedule/movement/staged_copy): which loads go through shared memory, along which axes a
// block has several points, and which rows of each tensor that takes.
#pragma once

#include <optional>
#include <vector>

#include "schedule/movement/access_samples.h"
#include "schedule/movement/staged_copy.h"

namespace fusec {

// How a tensor that the kernel reads or writes varies along the tile's axes.
struct TileSide {
  ExprId load = kNoExpr;  // kNoExpr: the result
  IndexExpr position{};
  int bits = 8;
  bool in_vectors = true, indexed = false, table = false;
  std::uint32_t along = 0;  // of loads that cross the last axis: the kernel's axis that neighbours lie along
  std::vector<std::int64_t> strides{};  // by axis: magnitudes in elements, at hints
  std::vector<IndexExpr> steps{};       // the same as expressions
  std::vector<bool> backwards{};        // the stride is negative
  std::vector<int> aligned{};           // bytes that each step is a multiple of
  int rest_aligned = 1;                 // bytes that the position is a multiple of where the tile's axes are 0
  double bytes() const { return bits / 8.0; }
};

using TileExtents = std::vector<std::int64_t>;

class TileSides {
 public:
  // `width`: elements of the last axis that are stored at a time; 0: words of runs.
  TileSides(Kernel kernel, const Graph& graph, int width);

 protected:
  struct Axis {
    std::uint32_t axis;
    std::int64_t extent;  // at hint
    bool known;           // not a symbol's
  };

  // False where there is nothing to be staged.
  bool find_loads() { return width_ > 0 ? find_crossing() : find_all(); }
  void find_axes();
  // The axes that a row of the tensor could go along, were they whole; the fastest first.
  std::vector<std::size_t> order_of(const TileSide& side) const;
  // `cut`: this many of the axes that a row could go along count as axes across rows.
  TileRows rows_of(const TileSide& side, const TileExtents& extents, std::size_t cut = 0) const;
  // Sectors of memory for a point.
  double sectors_of(const TileSide& side, const TileExtents& extents) const;
  double sectors_of(const TileExtents& extents) const;
  const Bounds& bounds() const { return kernel_.pool.bounds(); }

  const Graph& graph_;
  const int width_;
  Kernel kernel_;
  AccessSamples samples_;
  const std::vector<std::uint32_t> axes_;
  TileSide stored_;
  std::vector<TileSide> sides_;
  std::size_t tensors_ = 0;  // of them, the first ones; the others are of tables
  std::vector<Axis> tile_;
  double unstaged_sectors_ = 0;  // for a point, of what is read where it is stored

 private:
  bool is_stored_axis(std::uint32_t axis) const;
  bool mentions_axis(ExprId expr, std::uint32_t axis) const;
  bool find_crossing();
  bool words_of_half_bytes(const TileSide& side) const;
  bool find_all();
  bool moves_in_steps(const IndexExpr& position) const;
  void add_step(TileSide& side, std::uint32_t axis, const std::optional<IndexExpr>& step) const;
  void find_rest(TileSide& side) const;
};

bool has_axis(const std::vector<std::size_t>& axes, std::size_t i);

}  // namespace fusec
