// Copies lines of a tensor unchanged into a tile in shared memory with cp.async, up to 16 bytes at a time. Each thread
// copies the same elements of every tile of a loop, so its source and destination addresses are computed once, before
// the loop.
//
//   tile[line][e] = x[batch, first + line, e]
#pragma once

#include <optional>
#include <string>

#include "codegen/gemm/tile_load.h"

namespace fusec {

class AsyncLineCopy {
 public:
  // Returns nullopt when the elements need computation, when they are not contiguous in whole words, or when lines have
  // no constant stride. Each call of copy() gives the first line.
  static std::optional<AsyncLineCopy> plan(const TileLoader& loader, ExprEmitter& emitter, const TileLoad& load,
                                           int threads);

  // Emits the thread's source and destination addresses. Axes other than those of the load must be bound.
  void declare(ExprEmitter& emitter);
  // True when both tensors are read at the same element offsets. declare_like() may then replace declare(): it reuses
  // the other's addresses for a tile that begins `bytes` after the other's tile.
  bool same_offsets(const AsyncLineCopy& other) const;
  void declare_like(const AsyncLineCopy& other, int bytes);
  // Sets elements beyond the ends of the lines to 0, in `stages` tiles that are `stage_elements` apart. Once is enough:
  // copies never write them.
  void clear_rest(KernelWriter& writer, int stages = 1, int stage_elements = 0) const;
  bool has_rest() const { return load_.places > copies_per_line_ * elements_per_copy_; }
  // Issues the copies of the lines from `first` on, into the tile that begins `stage` bytes after the first one. Lines
  // beyond the last line of the tensor become 0.
  void copy(ExprEmitter& emitter, const std::string& first, const std::string& stage = "") const;

 private:
  std::string lines_type() const;

  TileLoad load_;
  IndexExpr position_, stride_, count_;
  int threads_ = 0;
  int copies_per_line_ = 0, elements_per_copy_ = 0, element_bytes_ = 2;
  std::string place_, to_, at_;
};

}  // namespace fusec
