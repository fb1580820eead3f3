// A product that sm_90a computes by warpgroups (wgmma) from tiles that TMA copies, and how it is cut into them. A
// factor of a gemm (gemm_form.h) is one of these where its position is linear in the rows (or columns), the depth and
// the batch: what TMA calls a tensor.
//
//   x[b, m, k]     innermost k, then m, then b: a box of 64 along k and 128 along m is a tile
//
// What is computed of narrower elements (gemm_operand.h) is no such tensor: threads make its tiles.
//
// Rows may come in groups with a matrix each (row_groups.h): a tile has rows of one of them, and the matrix' number is
// a dimension of the right factors.
//
// Rows that are no steps apart, or of an image with taps that may be outside (convolution_form.h), are no tensor to
// TMA: threads copy them. Where an image's channels lie first, TMA takes boxes of its planes (image_planes.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/convolution_form.h"
#include "analysis/gemm_form.h"
#include "analysis/warpgroup_operand.h"

namespace fusec {

struct WarpgroupLoop {
  std::vector<WarpgroupOperand> left, right;  // as the product's loop has them
  std::int64_t block = 0;                     // of the depth, for which factors' scales are the same; 0: all of it
  std::int64_t added_after = 0;               // so much of the depth a float8's sums are added up apart; 0: all of it
  std::int64_t tiled_depth = 0;               // each tap's channels in whole tiles; 0: the depth as the product has it

  bool scaled() const;
  bool picks_rows() const;
  bool computes() const;
  bool has_image() const;
  bool has_planes() const;
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
  static constexpr int kCopiesAhead = 3;  // stages whose copies are on their way of what a factor is computed from
  int columns = 256;
  int row_blocks = 1;  // of 128 rows
  int stages = 4;      // tiles along the depth that are in shared memory or on the way there
  int cluster = 2;     // blocks that make tiles below one another, and copy halves of the right factors for each other
  int staged_columns = 32;    // of a warp's sums on their way to what stands behind the product
  bool stores_boxes = false;  // finished rows go to memory by TMA, where an output lies so
  int shares = 1;             // of the depth, each a block's (analysis/depth_shares.h)

  int rows() const { return kRows * row_blocks; }
};

struct WarpgroupGemmForm {
  DType dtype = DType::kBFloat16;  // what is multiplied, as of a GemmForm
  std::vector<WarpgroupLoop> loops;
  WarpgroupTiles tiles;
  int sums = 1;
  bool float_sums = true;
  std::vector<std::optional<WarpgroupStore>> stores;  // of each output of the kernel
  std::optional<RowGroups> groups = std::nullopt;
  int matrices = 0;                               // that groups choose among
  std::optional<Product> product = std::nullopt;  // as it is cut, where that is not as it was found (image_planes.h)

  int element_bytes() const { return bits(dtype) / 8; }
  int depth() const { return WarpgroupTiles::kLineBytes / element_bytes(); }  // of a tile
  // Does TMA store the output? Tiles have whole lines of boxes.
  bool stores_boxes_of(std::size_t output) const {
    return tiles.stores_boxes && tiles.shares == 1 && stores[output] &&
           tiles.columns * stores[output]->element_bytes >= WarpgroupStore::kLine;
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
// The table of an image, of whole tiles along the depth.
std::int64_t table_entries(const WarpgroupGemmForm& form);
std::int64_t table_bytes(const WarpgroupGemmForm& form);
// Of a block: tiles, boxes of outputs, what factors are computed from, staged sums, an mbarrier for full and one for
// empty of each stage, groups' ends, a table.
std::int64_t shared_bytes(std::span<const WarpgroupGemmForm> forms);

// Does the target have wgmma, and TMA that copies into the blocks of a cluster?
bool has_warpgroups(const Target& target);

// A product of one launch.
struct WarpgroupCandidate {
  const Kernel* kernel;
  const Product* product;
  const GemmForm* form;
  const ConvolutionForm* convolution = nullptr;  // of which the form is that of a product
  const Graph* graph = nullptr;                  // of a product alone, whose image may be taken in planes
};

// Several products are one kernel's: of these, a form each.
struct WarpgroupGemms {
  std::vector<WarpgroupGemmForm> forms;
  double cycles = 0;  // predicted
};

// The ways to cut them into tiles, the best first; none where TMA cannot take a factor or the target has no wgmma.
std::vector<WarpgroupGemms> rank_warpgroup_gemms(std::span<const WarpgroupCandidate> products, const Target& target);
// Of a convolution; none as well where most of a tile would be empty.
std::vector<WarpgroupGemms> rank_warpgroup_convolutions(const Graph& graph, const Kernel& kernel,
                                                        const Product& product, const ConvolutionForm& form,
                                                        const Target& target);
// Likewise of one that has no form for warps: sums over several images.
std::vector<WarpgroupGemms> rank_warpgroup_planes(const Graph& graph, const Kernel& kernel, const Product& product,
                                                  const Target& target);
// The best way of one; nothing where the form at hand is predicted to be faster.
std::optional<WarpgroupGemms> best_warpgroup_gemm(const WarpgroupCandidate& product, const Target& target);
std::optional<WarpgroupGemms> best_warpgroup_convolution(const Graph& graph, const Kernel& kernel,
                                                         const Product& product, const ConvolutionForm& form,
                                                         const Target& target);
std::optional<WarpgroupGemms> best_warpgroup_planes(const Graph& graph, const Kernel& kernel, const Product& product,
                                                    const Target& target);
// The best way; none as well where the forms at hand are predicted to be faster.
std::vector<WarpgroupGemmForm> find_warpgroup_gemms(std::span<const WarpgroupCandidate> products, const Target& target);

// "128x256 by warpgroups, 4 stages, 2 blocks of a cluster".
std::string name_of(const WarpgroupTiles& tiles);

}  // namespace fusec
