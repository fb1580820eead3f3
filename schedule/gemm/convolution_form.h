// Implicit GEMM for operands that cannot be copied 16 bytes at a time: loads that are guarded (padding), strided or
// unaligned. This covers convolutions of one to three dimensions and GEMMs of odd sizes.
//
//   y[n, o, i, j] = sum_{c, u, v} w[o, c, u, v] * (x[n, c, i + u - 1, j + v - 1] if inside)
//
//   rows o, columns (n, i, j), K (c, u, v)
//   position of x = (offset of n, i, j) + (offset of c, u, v); its guards depend on the taps u or v, not on c
//
// A block computes a table of the K offsets once, of as many channels as it takes to repeat. Each thread keeps the taps
// that are outside for its column as bits of a word. So a gathered element needs a few instructions and no division,
// and the loads of the next steps are in flight while a tile is multiplied. For channels-last images K is ordered (u,
// v, c), and the same instructions copy 16 bytes.
//
// If the position is no such sum (upsampling, (i + u - 1) // 2; reflected borders, max(i + u - 1, 0)), the block first
// computes a position table with an entry per line of the tile and tap, -1 if outside.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "schedule/gemm/contraction.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/target/target.h"

namespace fusec {

// Guards that depend on these axes of K only. Each point of the axes has one bit.
struct ConvolutionTaps {
  std::vector<std::uint32_t> axes;
  std::vector<ExprId> guards;  // all must hold, otherwise the element is 0
  int first_bit = 0;
};

// How an operand's tile is filled.
enum class ConvolutionFill : std::uint8_t {
  kVectorCopy,     // 16 bytes at a time, along K
  kVectorGather,   // 16 bytes at a time, at positions from the table: channels-last images
  kScalarAlongK,   // element by element; neighbouring threads are neighbours along K
  kScalarAcrossK,  // element by element; neighbouring threads are neighbours across K
};

// Elements between the positions of two taps in the position table, for this many lines. The padding avoids bank
// conflicts when several taps are read.
constexpr std::int64_t position_table_stride(std::int64_t lines) {
  return lines + 8;
}

struct ConvolutionOperand {
  ExprId load = kNoExpr;
  ConvolutionFill fill = ConvolutionFill::kScalarAcrossK;
  std::vector<ConvolutionTaps> taps;
  IndexExpr across, k;  // position = across + k: across over rows or columns and the batch, k over the axes of K
  // Positions come from a table by line and tap: `taps` is one group, and `across` includes its axes.
  bool has_position_table = false;
  std::int64_t places = 0;  // number of taps in the table

  bool is_scalar() const { return fill == ConvolutionFill::kScalarAlongK || fill == ConvolutionFill::kScalarAcrossK; }
  bool gathered() const { return fill == ConvolutionFill::kScalarAcrossK; }
  bool has_offset_table = false;  // K offsets are not contiguous and come from a table
  // The table repeats after `period` elements of K with positions `further` higher. 0: the table has all of K.
  std::int64_t period = 0;
  IndexExpr further = 0;
  bool widened = false;     // float8 that is converted to float16 when loaded
  ExprId offset = kNoExpr;  // zero point of int8 (GemmOperand::offset)
};

struct ConvolutionForm {
  // float16, bfloat16, int8 (with int32 accumulators) or, from sm_89, float8 (e4m3 stands for both kinds) on tensor
  // cores; float32 with fused multiply-adds, or as tf32 if allowed.
  DType dtype = DType::kFloat16;
  bool tf32 = false;
  ConvolutionOperand left, right;
  GemmTiles tiles;
  std::vector<GemmTiles> ranking;   // candidates that fit, best first by the model
  std::vector<std::uint32_t> axes;  // of K, in tile order
  std::int64_t k = 0;
  double cycles = 0;  // predicted cycles of the busiest multiprocessor for `tiles`, to compare forms
  ExprId reduction = kNoExpr;

  bool tensor_cores() const { return tf32 || bits(dtype) <= 16; }
  // True for 4-byte elements, which cp.async copies one by one. Narrower elements go through registers.
  bool words() const { return bits(dtype) == 32; }
  int element_bytes() const { return bits(dtype) / 8; }
  std::int64_t stage_bytes() const { return std::int64_t{tiles.rows + tiles.columns} * tiles.k * element_bytes(); }
  bool has_vector_gather() const {
    return left.fill == ConvolutionFill::kVectorGather || right.fill == ConvolutionFill::kVectorGather;
  }
  // Entries of the K-offset table if it does not repeat: K in whole tiles.
  std::int64_t entries() const { return (k + tiles.k - 1) / tiles.k * tiles.k; }
  int entry_elements(const ConvolutionOperand& f) const {
    return f.fill == ConvolutionFill::kVectorGather ? 16 / element_bytes() : 1;
  }
  std::int64_t table_entries(const ConvolutionOperand& f) const {
    return (f.period > 0 ? f.period : entries()) / entry_elements(f);
  }
  std::int64_t position_table_bytes(const ConvolutionOperand& f) const {
    return f.has_position_table ? 4 * (f.places + 1) * position_table_stride(&f == &left ? tiles.rows : tiles.columns)
                                : 0;
  }
  std::int64_t table_bytes(const ConvolutionOperand& f) const {
    return f.has_offset_table ? 8 * table_entries(f) + position_table_bytes(f) : 0;
  }
  std::int64_t shared_bytes() const { return stage_bytes() * tiles.stages + table_bytes(left) + table_bytes(right); }
};

// The convolution as a GEMM form, for the epilogue and the cost models. `accumulators`: of the kernel.
GemmForm as_gemm(const ConvolutionForm& form, std::size_t accumulators = 1);

std::optional<ConvolutionForm> find_convolution(const Graph& graph, const Kernel& kernel,
                                                const Contraction& contraction, const Target& target);

// One accumulator of a contraction.
struct ContractionAccumulator {
  ExprId reduction, left, right;
};

// The dtype to multiply in: int8 for integers, float8 if the tensor cores support it.
DType multiplied_dtype(const ExprPool& pool, const Contraction& contraction, const ContractionAccumulator& sum,
                       const Target& target);

// Several convolutions with the same output axes and different operands, in one kernel: the second convolution of a
// residual block with its shortcut convolution, or both halves of a gated one. Tensor cores compute them one after the
// other with equal tiles. All accumulators stay in registers for the epilogue.
struct JoinedConvolutions {
  std::vector<ConvolutionForm> forms;  // one per term, in loop order; their own rankings are empty
  std::vector<GemmTiles> ranking;
  double cycles = 0;

  void take(const GemmTiles& tiles) {
    for (ConvolutionForm& form : forms) form.tiles = tiles;
  }
};

std::optional<JoinedConvolutions> find_joined_convolutions(const Graph& graph, const Kernel& kernel,
                                                           const Contraction& contraction, const Target& target);

// The candidate tiles.
std::vector<GemmTiles> convolution_tile_table(DType dtype, bool tf32 = false);

}  // namespace fusec
