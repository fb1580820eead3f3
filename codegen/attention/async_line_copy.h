// Copies lines of memory as they lie there into a tile in shared memory, up to 16 bytes at a time, while threads go on:
// the tiles of a loop, of which each thread copies the same places. Where its places lie is worked out before the loop.
//
//   tile[line][place] = x[batch, first + line, place]
#pragma once

#include <optional>
#include <string>

#include "codegen/gemm/tile_load.h"

namespace fusec {

class AsyncLineCopy {
 public:
  // Nothing where elements do not lie in memory as the tile has them, in whole words, or lines are no fixed distance
  // apart. The load's first line is given with each copy.
  static std::optional<AsyncLineCopy> plan(const TileLoader& loader, ExprEmitter& emitter, const TileLoad& load,
                                           int threads);

  // Where this thread's copies come from and go to; axes other than the load's must be bound.
  void declare(ExprEmitter& emitter);
  // Instead of that, where the places in both tensors are the same as another's, whose tile lies `bytes` before this
  // one.
  bool same_places(const AsyncLineCopy& other) const;
  void declare_like(const AsyncLineCopy& other, int bytes);
  // Places of the tile beyond the lines' ends become 0: once, since copies leave them alone.
  void clear_rest(KernelWriter& writer) const;
  bool has_rest() const { return load_.places > units_ * together_; }
  // Issues the copies of the lines from `first` on; lines beyond the last become 0.
  void copy(ExprEmitter& emitter, const std::string& first) const;

 private:
  std::string lines_type() const;

  TileLoad load_;
  IndexExpr position_, stride_, count_;
  int threads_ = 0;
  int units_ = 0, together_ = 0;  // copies of a line, 16-bit elements in a copy
  std::string place_, to_, at_;
};

}  // namespace fusec
