// Skinny GEMM (at most 32 rows, as in decoding), limited by how fast the matrix is loaded.
//
//   y[i, n] = sum_k x[i, k] * w[n, k]        w may also be w[k, n], or be computed from loads
//
// Vector loads bring each element of w once, directly into the registers of the lane that multiplies it. The warps of a
// block split K. The last axis of K is divided into groups of `k_per_lane` neighbours, one lane each. If w is not
// K-major, the last axis of the columns is divided into groups of eight instead.
//
// A lane has 16 bytes of w, but may have more bytes of x. It then loads x in runs of 16 bytes that are apart, so that
// the four lanes of a row load whole sectors together, and exchanges the runs before the multiplication.
//
// Integers are multiplied as int8. If w has scales per block of K, each step lies within a block and the accumulators
// of the step are scaled. For up to 16 rows quantized values are then multiplied by their bits
// (schedule/gemm/magic_dequantize), because converting int4 would take longer than loading it.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "schedule/gemm/contraction.h"
#include "schedule/gemm/magic_dequantize.h"
#include "schedule/gemm/skinny_gemm_block.h"
#include "schedule/target/target.h"

namespace fusec {

struct SkinnyGemmOperand {
  ExprId operand = kNoExpr;                                        // in the split kernel
  bool plain = false;                                              // words of memory are multiplied unchanged
  std::vector<ExprId> scales = {};                                 // per block of K; they multiply the accumulators
  std::optional<MagicDequantize> magic_dequantize = std::nullopt;  // multiplied in place of `operand`
  bool blockwise_zero = false;  // the zero point of `operand` changes with the blocks of the scales

  bool scales_accumulators() const { return magic_dequantize || !scales.empty(); }
};

struct SkinnyGemmLoop {
  std::vector<std::uint32_t> k;  // axes of the groups
  std::uint32_t member = 0;      // axis within a group
  std::vector<SkinnyGemmOperand> left, right;
  std::vector<ContractionTerm> terms;  // reductions of the original kernel
  bool k_invariant_scales = false;     // scales are the same for all of K
  bool scaled() const {
    return std::any_of(right.begin(), right.end(), [](const SkinnyGemmOperand& f) { return f.scales_accumulators(); });
  }
};

struct SkinnyGemmForm {
  Kernel kernel;                                    // with split axes
  std::vector<std::uint32_t> batch, rows, columns;  // axes of `kernel`; columns in groups of eight if w is not K-major
  std::vector<std::uint32_t> unit_axes;
  std::vector<ExprId> row_values;  // in `kernel`, operands before users
  std::vector<ExprId> row_values_before;
  std::uint32_t column_member = 0;
  std::vector<SkinnyGemmLoop> loops;
  DType dtype = DType::kFloat16;  // what is multiplied: a 16-bit float, or int8
  bool int32_accumulators = false;
  bool k_major = true;
  int k_per_lane = 8;
  int runs = 1;             // runs of `run_length` elements per lane in a row of x
  std::uint32_t run = 0;    // axis of the run, in the left operands if runs > 1
  std::uint32_t place = 0;  // axis within a run, in the left operands if runs > 1
  int max_rows = 1;
  SkinnyGemmBlock block;                    // the first of `candidates`
  std::vector<SkinnyGemmBlock> candidates;  // best first by the model
  int accumulators = 1;

  int n8_row_tiles() const { return (max_rows + 7) / 8; }
  int run_length() const { return k_per_lane / runs; }
};

// `contraction` must be in the kernel and may have no rows (a vector times a matrix).
std::optional<SkinnyGemmForm> find_skinny_gemm(const Graph& graph, const Kernel& kernel, const Contraction& contraction,
                                               const Target& target);

// Shared memory in bytes: the accumulators of all warps, or the exchanged runs of rows.
std::int64_t shared_bytes(const SkinnyGemmForm& form);

// Bytes of the runs of rows that a warp's lanes exchange.
std::int64_t shared_bytes_of_runs(const SkinnyGemmForm& form);

}  // namespace fusec
