// A product of warpgroups as it is cut into tiles: its loops with their factors, the outputs that TMA stores, the
// tiles, and how much of a block's shared memory each of these takes. Which way to cut it is the best one,
// warpgroup_gemm_form says.
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
  std::vector<WarpgroupOperand> left, right;  // as the product's loop has them
  std::int64_t block = 0;                     // of the depth, for which factors' scales are the same; 0: all of it
  std::int64_t added_after = 0;               // so much of the depth a float8's sums are added up apart; 0: all of it
  std::int64_t padded_k = 0;                  // each tap's channels in whole tiles; 0: the depth as the product has it

  bool scaled() const;
  bool picks_rows() const;
  bool computes() const;
  bool picks_columns() const;
  const WarpgroupOperand* image() const;  // whose rows are picked, if any
  bool has_image_boxes() const;
  // Are sums of parts of the depth added to those that are kept?
  bool in_parts() const { return block != 0 || added_after != 0; }
};

// An output that TMA may store: as a factor, over the product's rows, columns that are neighbours, and batch.
struct WarpgroupStore {
  static constexpr int kLine = 128, kLines = 16;  // bytes of a box's line; the rows of a warp
  int element_bytes = 2;
  IndexExpr offset, stride;
  std::vector<WarpgroupOperand::Batch> batch;
};

// What a block makes: 128 rows, 64 of them by each of two warpgroups, which another one's copies feed; or as many
// again below these, so that what is computed of the right factors is multiplied with twice as many rows.
struct WarpgroupTiles {
  static constexpr int kRows = 128, kConsumers = 2, kThreads = 384;
  static constexpr int kLineBytes = WarpgroupOperand::kLineBytes;
  static constexpr int kOffsetBytes = 4 * 256;  // of a thread each: what offsets take from columns' sums
  static constexpr int kCopiesAhead = 3;  // stages whose copies are on their way of what a factor is computed from
  int columns = 256;
  int row_blocks = 1;  // of 128 rows
  int stages = 4;      // tiles along the depth that are in shared memory or on the way there
  int cluster = 2;     // blocks that make tiles below one another, and copy halves of the right factors for each other
  int staged_columns = 32;    // of a warp's sums on their way to what stands behind the product
  bool stores_boxes = false;  // finished rows go to memory by TMA, where an output lies so
  int split_k = 1;            // of the depth, each a block's (schedule/gemm/split_k.h)

  int rows() const { return kRows * row_blocks; }
};

struct WarpgroupGemmForm {
  DType dtype = DType::kBFloat16;  // what is multiplied, as of a GemmForm
  std::vector<WarpgroupLoop> loops;
  WarpgroupTiles tiles;
  int accumulators = 1;
  bool float_accumulators = true;
  std::vector<std::optional<WarpgroupStore>> stores;  // of each output of the kernel
  std::optional<GroupedGemm> groups = std::nullopt;
  int matrices = 0;  // that groups choose among
  std::optional<Contraction> product =
      std::nullopt;  // as it is cut, where that is not as it was found (tma_image_boxes.h)
  std::shared_ptr<const InterleavedColumns> pairs = nullptr;  // as of a GemmForm

  int element_bytes() const { return bits(dtype) / 8; }
  int k() const { return WarpgroupTiles::kLineBytes / element_bytes(); }  // of a tile
  bool takes_offsets() const;                                             // from sums of int8
  // Does TMA store the output? Tiles have whole lines of boxes.
  bool stores_boxes_of(std::size_t output) const {
    return tiles.stores_boxes && tiles.split_k == 1 && stores[output] &&
           (pairs ? tiles.columns / 2 : tiles.columns) * stores[output]->element_bytes >= WarpgroupStore::kLine;
  }
  // Scales that differ along the depth come with the tiles.
  bool scales_in_stages() const;
};

// Of what lies in a stage: the tiles, and behind them the scales of blocks of the depth.
std::int64_t stage_bytes(const WarpgroupGemmForm& form);
// Of what a stage's factors are computed from.
std::int64_t copied_bytes(const WarpgroupGemmForm& form);
// Of 16 rows of all sums of a warp.
std::int64_t staged_bytes(const WarpgroupGemmForm& form);
// Of 16 lines of 128 bytes of each output that a warp has TMA store.
std::int64_t box_bytes(const WarpgroupGemmForm& form);
// The most of several forms that share a kernel, whose numbers of stages and blocks of a cluster are the same.
std::int64_t stage_bytes(std::span<const WarpgroupGemmForm> forms);
std::int64_t copied_bytes(std::span<const WarpgroupGemmForm> forms);
std::int64_t staged_bytes(std::span<const WarpgroupGemmForm> forms);
std::int64_t box_bytes(std::span<const WarpgroupGemmForm> forms);
// Where groups of rows end, as it is found and in order.
std::int64_t group_bytes(const WarpgroupGemmForm& form);
// The table of an image, of whole tiles along the depth, and that of its places (convolution_form.h) for the rows of a
// tile: eight lanes have a row, four rows' pieces of eight taps are looked up without bank conflicts.
std::int64_t table_entries(const WarpgroupGemmForm& form);
constexpr std::int64_t kPlaceStride = WarpgroupTiles::kRows + 4;  // from one tap's to the next
std::int64_t table_bytes(const WarpgroupGemmForm& form);
// Of a block: tiles, boxes of outputs, what factors are computed from, staged sums, an mbarrier for full and one for
// empty of each stage, groups' ends, a table.
std::int64_t shared_bytes(std::span<const WarpgroupGemmForm> forms);

// "128x256 by warpgroups, 4 stages, 2 blocks of a cluster".
std::string name_of(const WarpgroupTiles& tiles);

}  // namespace fusec
