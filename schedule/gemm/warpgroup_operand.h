// A factor of a product that is multiplied by warpgroups (warpgroup_gemm_form.h), and how one is recognised: as a
// tensor to TMA, or as what threads make tiles of: rows that they copy, an image, what is computed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedule/gemm/convolution_form.h"
#include "schedule/gemm/gemm_form.h"

namespace fusec {

struct WarpgroupOperand {
  static constexpr int kLineBytes = 128;  // of the depth in a tile, where lines run along it
  static constexpr std::size_t kMostBatch = 2;

  ExprId load = kNoExpr;
  bool k_major = false;  // neighbours in memory are neighbours along the depth, else across it
  IndexExpr offset;      // elements from the tensor's beginning
  IndexExpr stride;      // elements between neighbours across the depth, or along it: those that are apart
  // Where the depth lies in so many stretches of so many, a multiple of a tile's depth each (heads that were merged),
  // or taken as one (a tap's channels).
  struct Stretches {
    IndexExpr extent, count, stride;
  };
  std::optional<Stretches> stretches;
  struct Batch {
    IndexExpr position, extent, stride;  // position: over the product's batch
  };
  std::vector<Batch> batch;    // innermost first; axes that the factor does not have are left out
  std::vector<ExprId> scales;  // as GemmOperand has them
  ExprId taken = kNoExpr;      // of int8, of a left factor: its offset there
  // Rows that threads copy, each along the depth: where one begins.
  std::optional<IndexExpr> gathered = std::nullopt;
  // What a factor is computed from; nor is that a tensor to TMA. About so many instructions an element.
  std::optional<GemmOperand> transformed = std::nullopt;
  double instructions = 0;
  // Of an image, whose channels lie last: a table says what each 16 bytes of the depth add to that, and whether they
  // are there.
  struct Image {
    ConvolutionOperand factor;
    std::vector<std::uint32_t> axes;  // of the depth, in its order
    std::int64_t k = 0;
  };
  std::optional<Image> image = std::nullopt;
  // Of an image: boxes of so many pixels of a row, a tap's channels at a time, for TMA (tma_image_boxes.h).
  struct ImageBoxes {
    struct Dimension {
      IndexExpr extent, stride, position;  // position: over the columns, the batch and the taps
    };
    std::vector<Dimension> dimensions;  // innermost first
    std::size_t channels = 0;           // the dimension that a tile's depth goes along, too
    std::size_t neighbours = 0;         // that of the pixels of a box
    std::vector<std::uint32_t> taps;    // the depth's other axes
    std::int64_t k = 0;                 // channels
    int pixels = 64;
  };
  std::optional<ImageBoxes> boxes = std::nullopt;
};

// Elements of a factor: those of 16 bytes, of which TMA's strides are multiples, and of a tile along the depth.
struct WarpgroupElements {
  int aligned, k;
};
WarpgroupElements warpgroup_elements(int element_bytes);

// A position where all axes are 0: where a tensor of TMA begins.
IndexExpr at_origin(const IndexExpr& e, const Bounds& bounds);
// The batch's dimensions: those whose steps are the same as of one flattened are one. Nothing where TMA has too few.
std::optional<std::vector<WarpgroupOperand::Batch>> batch_of(const ExprPool& pool, const IndexExpr& position,
                                                             std::span<const std::uint32_t> axes, int aligned);

// As a tensor to TMA: lines across the product's rows (or columns), and along the depth.
std::optional<WarpgroupOperand> tensor_operand(const ExprPool& pool, const GemmOperand& given,
                                               const std::vector<std::uint32_t>& across,
                                               const std::vector<std::uint32_t>& k,
                                               const std::vector<std::uint32_t>& batch,
                                               const WarpgroupElements& elements);
// As rows that threads copy: neighbours along the depth are in pieces of 16 bytes.
std::optional<WarpgroupOperand> gathered_operand(const GemmOperand& given);
// As what threads compute: pieces of what it is computed from are so far apart along the depth, everywhere.
std::optional<WarpgroupOperand> computed_operand(const ExprPool& pool, const GemmOperand& given);
// An image whose channels lie last, and weights that lie as the depth goes.
std::optional<WarpgroupOperand> image_operand(const ConvolutionForm& form, bool left);
std::optional<WarpgroupOperand> weights_operand(const ExprPool& pool, const ConvolutionForm& form,
                                                const Contraction& product, bool left);

// Of an element of a factor that is computed, what it is computed from.
std::int64_t bits_copied(const WarpgroupOperand& operand);

}  // namespace fusec
