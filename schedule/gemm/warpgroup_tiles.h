// The tiling of a GEMM by warpgroups: its loops with their operands, the outputs that TMA stores, the tiles, and the
// shared memory that they need. warpgroup_gemm_form.h chooses the best tiling.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schedule/gemm/contraction.h"
#include "schedule/gemm/grouped_gemm.h"
#include "schedule/gemm/interleaved_columns.h"
#include "schedule/gemm/warpgroup_operand.h"

namespace fusec {

struct WarpgroupLoop {
  std::vector<WarpgroupOperand> left, right;  // in the order of the contraction's loop
  std::int64_t block = 0;                     // length of K with constant scales; 0: all of K
  std::int64_t promotion_interval =
      0;                      // K after which float8 partial sums are added to the float32 accumulators; 0: all of K
  std::int64_t padded_k = 0;  // K with each tap's channels padded to whole tiles; 0: K is not padded

  bool scaled() const;
  bool has_gathered_rows() const;
  bool computes() const;
  bool has_gathered_columns() const;
  const WarpgroupOperand* image() const;  // the image with gathered rows, or null
  bool has_image_boxes() const;
  // True if partial sums over K are added to the main accumulators.
  bool has_partial_accumulators() const { return block != 0 || promotion_interval != 0; }
};

// An output that TMA can store, as an operand over rows, contiguous columns and batch.
struct WarpgroupStore {
  static constexpr int kLine = 128, kLines = 16;  // bytes per line of a box; lines: the rows of a warp
  int element_bytes = 2;
  IndexExpr offset, stride;
  std::vector<WarpgroupOperand::Batch> batch;
};

// The tile of a block: 128 rows, 64 for each of two consumer warpgroups; a third warpgroup copies. With two row blocks
// the tile has 256 rows, so that each computed element of the right operands is multiplied with twice as many rows.
struct WarpgroupTiles {
  static constexpr int kRows = 128, kConsumers = 2, kThreads = 384;
  static constexpr int kLineBytes = WarpgroupOperand::kLineBytes;
  static constexpr int kOffsetBytes = 4 * 256;  // per thread one int: sums of columns for zero points
  static constexpr int kCopiesAhead = 3;        // stages of copies in flight for transformed operands
  int columns = 256;
  int row_blocks = 1;  // row blocks of 128 rows
  int stages = 4;      // tiles along K in shared memory or in flight
  // Blocks per cluster: their tiles are below one another, and each copies half of the right operands for both.
  int cluster = 2;
  int staged_columns = 32;    // columns of a warp's accumulators that are staged at a time for the epilogue
  bool stores_boxes = false;  // TMA stores finished rows, for outputs that allow it
  int split_k = 1;            // splits of K, one block each (schedule/gemm/split_k.h)

  int rows() const { return kRows * row_blocks; }
};

struct WarpgroupGemmForm {
  DType dtype = DType::kBFloat16;  // what is multiplied (see GemmForm)
  std::vector<WarpgroupLoop> loops;
  WarpgroupTiles tiles;
  int accumulators = 1;
  bool float_accumulators = true;
  std::vector<std::optional<WarpgroupStore>> stores;  // one per output of the kernel
  std::optional<GroupedGemm> groups = std::nullopt;
  int matrices = 0;  // number of matrices that groups choose from
  std::optional<Contraction> contraction =
      std::nullopt;  // as tiled, if that differs from the given contraction (tma_image_boxes.h)
  std::shared_ptr<const InterleavedColumns> pairs = nullptr;  // see GemmForm

  int element_bytes() const { return bits(dtype) / 8; }
  int k() const { return WarpgroupTiles::kLineBytes / element_bytes(); }  // K elements per tile
  bool takes_offsets() const;  // zero points are subtracted from int8 accumulators
  // True if TMA stores the output. A tile's columns must fill whole lines of boxes.
  bool stores_boxes_of(std::size_t output) const {
    return tiles.stores_boxes && tiles.split_k == 1 && stores[output] &&
           (pairs ? tiles.columns / 2 : tiles.columns) * stores[output]->element_bytes >= WarpgroupStore::kLine;
  }
  // True if scales differ along K; a stage then includes them.
  bool scales_in_stages() const;
};

// Bytes of a stage: its tiles, then the scales of blocks of K.
std::int64_t stage_bytes(const WarpgroupGemmForm& form);
// Bytes of a stage's sources of transformed operands.
std::int64_t copied_bytes(const WarpgroupGemmForm& form);
// Bytes to stage 16 rows of all accumulators of a warp.
std::int64_t staged_bytes(const WarpgroupGemmForm& form);
// Bytes of a warp's boxes: 16 lines of 128 bytes per output that TMA stores.
std::int64_t box_bytes(const WarpgroupGemmForm& form);
// The maximum over several forms that share a kernel. All have the same number of stages and the same cluster.
std::int64_t stage_bytes(std::span<const WarpgroupGemmForm> forms);
std::int64_t copied_bytes(std::span<const WarpgroupGemmForm> forms);
std::int64_t staged_bytes(std::span<const WarpgroupGemmForm> forms);
std::int64_t box_bytes(std::span<const WarpgroupGemmForm> forms);
// Bytes for the ends of the groups of rows, unsorted and sorted.
std::int64_t group_bytes(const WarpgroupGemmForm& form);
// The K-offset table of an image, padded to whole tiles, and the position table (convolution_form.h) for the rows of a
// tile. The stride between taps avoids bank conflicts: eight lanes read a row, and four rows' pieces of eight taps are
// read at once.
std::int64_t table_entries(const WarpgroupGemmForm& form);
constexpr std::int64_t kPositionTableStride = WarpgroupTiles::kRows + 4;  // from one tap to the next
std::int64_t table_bytes(const WarpgroupGemmForm& form);
// Shared memory of a block: tiles, boxes of outputs, sources of transformed operands, staged accumulators, two
// mbarriers per stage (full, empty), ends of groups, tables.
std::int64_t shared_bytes(std::span<const WarpgroupGemmForm> forms);

// A description such as "128x256 by warpgroups, 4 stages, 2 blocks of a cluster".
std::string name_of(const WarpgroupTiles& tiles);

}  // namespace fusec
