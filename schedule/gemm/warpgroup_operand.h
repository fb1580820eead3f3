// An operand of a GEMM by warpgroups (warpgroup_gemm_form.h), and the functions that recognize one: a tensor for TMA,
// rows that threads copy, an image, or a transformed operand.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedule/gemm/convolution_form.h"
#include "schedule/gemm/gemm_form.h"

namespace fusec {

struct WarpgroupOperand {
  static constexpr int kLineBytes = 128;  // bytes of K per line of a tile, if the operand is K-major
  static constexpr std::size_t kMostBatch = 2;

  ExprId load = kNoExpr;
  bool k_major = false;  // neighbours in memory are neighbours along K; otherwise across K
  IndexExpr offset;      // elements from the start of the tensor
  IndexExpr stride;      // elements between lines: across K if K-major, otherwise along K
  // K in segments of equal length, each a multiple of a tile's K (merged heads), or treated like that (a tap's
  // channels). Extent: elements per segment; count: segments; stride: elements from one segment to the next.
  struct KSegments {
    IndexExpr extent, count, stride;
  };
  std::optional<KSegments> k_segments;
  struct Batch {
    IndexExpr position, extent, stride;  // position: an expression over the batch of the GEMM
  };
  std::vector<Batch> batch;     // innermost first; axes that the operand does not have are left out
  std::vector<ExprId> scales;   // see GemmOperand::scales
  ExprId zero_point = kNoExpr;  // zero point of an int8 left operand (GemmOperand::offset)
  // For K-major rows that threads copy: the start of a row.
  std::optional<IndexExpr> gathered = std::nullopt;
  // For a transformed operand: its sources, and the estimated instructions per element.
  std::optional<GemmOperand> transformed = std::nullopt;
  double instructions = 0;
  // For a channels-last image: a table gives the offset of each 16 bytes along K, and whether they are inside the
  // image.
  struct Image {
    ConvolutionOperand convolution_operand;
    std::vector<std::uint32_t> axes;  // of K, in tile order
    std::int64_t k = 0;
  };
  std::optional<Image> image = std::nullopt;
  // For an image in TMA boxes (tma_image_boxes.h): a box has one tap's channels of some pixels of a row.
  struct ImageBoxes {
    struct Dimension {
      IndexExpr extent, stride, position;  // position: an expression over columns, batch and taps
    };
    std::vector<Dimension> dimensions;  // innermost first
    std::size_t channels = 0;           // index of the dimension that is part of K
    std::size_t neighbours = 0;         // index of the dimension of a box's pixels
    std::vector<std::uint32_t> taps;    // the other axes of K
    std::int64_t k = 0;                 // number of channels
    int pixels = 64;
  };
  std::optional<ImageBoxes> boxes = std::nullopt;
};

// Element counts: 16 bytes, the alignment of TMA strides; and a tile's K.
struct WarpgroupElements {
  int aligned, k;
};
WarpgroupElements warpgroup_elements(int element_bytes);

// The position with all axes at 0: the start of a TMA tensor.
IndexExpr at_origin(const IndexExpr& e, const Bounds& bounds);
// The batch dimensions. Contiguous axes become one dimension. Returns nullopt if TMA has too few dimensions.
std::optional<std::vector<WarpgroupOperand::Batch>> batch_of(const ExprPool& pool, const IndexExpr& position,
                                                             std::span<const std::uint32_t> axes, int aligned);

// Recognizes a TMA tensor. `across`: the rows or columns of the GEMM.
std::optional<WarpgroupOperand> tensor_operand(const ExprPool& pool, const GemmOperand& given,
                                               const std::vector<std::uint32_t>& across,
                                               const std::vector<std::uint32_t>& k,
                                               const std::vector<std::uint32_t>& batch,
                                               const WarpgroupElements& elements);
// Recognizes K-major rows that threads copy in pieces of 16 bytes.
std::optional<WarpgroupOperand> gathered_operand(const GemmOperand& given);
// Recognizes a transformed operand whose sources have a constant stride along K.
std::optional<WarpgroupOperand> computed_operand(const ExprPool& pool, const GemmOperand& given);
// Recognize a channels-last image, and weights with the same order of K.
std::optional<WarpgroupOperand> image_operand(const ConvolutionForm& form, bool left);
std::optional<WarpgroupOperand> weights_operand(const ExprPool& pool, const ConvolutionForm& form,
                                                const Contraction& contraction, bool left);

// Bits copied per element of a transformed operand.
std::int64_t bits_copied(const WarpgroupOperand& operand);

}  // namespace fusec
