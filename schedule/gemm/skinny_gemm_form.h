// A product of a few rows with a large matrix, as in decoding: what counts is how fast the matrix comes from memory.
//
//   y[i, n] = sum_k x[i, k] * w[n, k]        at most 32 rows i; w also as w[k, n], or computed of what is in memory
//
// Each element of w is loaded once, by vectors, straight into the registers of the lane that multiplies it; warps share
// the depth among themselves. For that the last axis of the depth comes in groups of `together` neighbours, a lane's;
// where w's neighbours lie across the depth, the last axis of the columns comes in eights instead.
//
// A lane's neighbours that are 16 bytes of w and more of x are, of x, runs of 16 bytes apart, so that the four lanes of
// a row ask for whole sectors together; they hand them to one another before they multiply.
//
// Integers are multiplied as int8. Where w is what can be multiplied times scales of blocks of the depth, each step's
// sums are multiplied by them: a step lies within a block. Codes are then multiplied as bits, for up to 16 rows
// (schedule/gemm/magic_dequantize): at the rate at which int4 comes from memory, making numbers of it would be most of
// the work.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "schedule/gemm/contraction.h"
#include "schedule/gemm/magic_dequantize.h"
#include "schedule/target/target.h"

namespace fusec {

struct SkinnyGemmOperand {
  ExprId operand = kNoExpr;         // of the split kernel
  bool plain = false;               // words of memory are operands as they are
  std::vector<ExprId> scales = {};  // of a block of the depth: what sums are multiplied by
  std::optional<MagicDequantize> magic_dequantize = std::nullopt;  // what is multiplied in place of `factor`
  bool blockwise_zero = false;  // the zero point in `factor` is one of a block with the scales

  bool scales_accumulators() const { return magic_dequantize || !scales.empty(); }
};

struct SkinnyGemmLoop {
  std::vector<std::uint32_t> k;  // of groups
  std::uint32_t member = 0;      // of a group
  std::vector<SkinnyGemmOperand> left, right;
  std::vector<ContractionTerm> terms;  // reductions of the kernel as it was
  bool k_invariant_scales = false;     // scales are the same all along the depth
  bool scaled() const {
    return std::any_of(right.begin(), right.end(), [](const SkinnyGemmOperand& f) { return f.scales_accumulators(); });
  }
};

struct SkinnyGemmBlock {
  int columns = 16;
  int warps = 8;
  int prefetch_steps = 4;  // steps whose loads are on the way at a time

  friend bool operator==(const SkinnyGemmBlock&, const SkinnyGemmBlock&) = default;
};

struct SkinnyGemmForm {
  Kernel kernel;                                    // with axes split
  std::vector<std::uint32_t> batch, rows, columns;  // its axes; columns: of eights, where w lies across the depth
  std::vector<std::uint32_t> ones;
  std::vector<ExprId> row_values;  // of `kernel`, operands first
  std::vector<ExprId> row_values_before;
  std::uint32_t column_member = 0;
  std::vector<SkinnyGemmLoop> loops;
  DType dtype = DType::kFloat16;    // of what is multiplied: 16-bit floats, or int8
  bool int32_accumulators = false;  // int32
  bool k_major = true;
  int k_per_lane = 8;
  int runs = 1;             // that a lane's neighbours are in a row's loads: of `run_length`
  std::uint32_t run = 0;    // which of the `together` neighbours' runs: an axis that rows' factors have where runs > 1
  std::uint32_t place = 0;  // in a run: likewise
  int max_rows = 1;
  SkinnyGemmBlock block;                    // the first of:
  std::vector<SkinnyGemmBlock> candidates;  // the best first, as predicted
  int accumulators = 1;

  int eights_of_rows() const { return (max_rows + 7) / 8; }
  int run_length() const { return k_per_lane / runs; }
};

// The kernel must hold the product, whose rows may be none: a vector times a matrix.
std::optional<SkinnyGemmForm> find_skinny_gemm(const Graph& graph, const Kernel& kernel, const Contraction& product,
                                               const Target& target);

// Sums of all warps on their way to one another, or what lanes hand to one another before.
std::int64_t shared_bytes(const SkinnyGemmForm& form);

// Runs of rows of a warp, on their way from lane to lane.
std::int64_t shared_bytes_of_runs(const SkinnyGemmForm& form);

// "32 columns by 8 warps, 4 steps ahead".
std::string name_of(const SkinnyGemmBlock& block);

}  // namespace fusec
