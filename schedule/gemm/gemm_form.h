// The GEMM form for operands that cp.async copies 16 bytes at a time, and its tiling.
//
//   linear     x[m, k], w[n, k]        both are K-major
//   matmul     x[m, k], w[k, n]        w is contiguous along the columns
//
// An operand's position must be a part over rows (or columns) and batch, plus a part over K. Each may consist of
// several axes (heads, groups, flattened dimensions). Transformed operands are computed from copies
// (schedule/gemm/gemm_operand.h). This form does not cover gathered, guarded or unaligned operands:
// codegen/gemm/contraction loads them element by element.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "ir/graph.h"
#include "schedule/gemm/contraction.h"
#include "schedule/gemm/gemm_operand.h"
#include "schedule/gemm/grouped_gemm.h"
#include "schedule/gemm/interleaved_columns.h"
#include "schedule/target/target.h"

namespace fusec {

struct GemmLoop {
  std::vector<GemmOperand> left, right;  // in the order of the contraction's loop
  std::int64_t block = 0;                // length of K with constant scales; 0: all of K
  // Scale blocks per tile of length k; 1 if a block is one tile or several.
  int blocks_per_tile(int k) const {
    return block % k == 0 ? 1 : k / static_cast<int>(std::gcd(block, std::int64_t{k}));
  }
  bool plain() const {
    const auto is = [](const GemmOperand& o) { return !o.transformed() && o.scales.empty() && o.offset == kNoExpr; };
    return std::all_of(left.begin(), left.end(), is) && std::all_of(right.begin(), right.end(), is);
  }
  bool scaled() const {
    const auto is = [](const GemmOperand& o) { return !o.scales.empty(); };
    return std::any_of(left.begin(), left.end(), is) || std::any_of(right.begin(), right.end(), is);
  }
};

// The tiles of a block and of its warps. Without tensor cores the lanes of a warp are 4 by 8, with 8x8 or 4x4
// accumulators each.
struct GemmTiles {
  int rows = 0, columns = 0;
  int warp_rows = 0, warp_columns = 0;
  int k = 32;
  int stages = 4;   // tiles along K in shared memory or in flight
  int split_k = 1;  // splits of K, one block each (schedule/gemm/split_k.h)

  int warps_down() const { return rows / warp_rows; }
  int warps_across() const { return columns / warp_columns; }
  int threads() const { return warps_down() * warps_across() * 32; }
};

// Cycles per second in the models. It is the same for all targets, so that cycles compare with launch and memory times.
inline constexpr double kCyclesPerSecond = 1.5e9;

struct GemmForm {
  // What is multiplied: float16, bfloat16, int8 (with int32 accumulators) or, from sm_89, float8 (e4m3 stands for both
  // kinds) on tensor cores; float32 with fused multiply-adds, or on tensor cores as tf32 if allowed.
  DType dtype = DType::kFloat16;
  bool tf32 = false;
  std::vector<GemmLoop> loops;
  GemmTiles tiles;                 // the first of `ranking`
  std::vector<GemmTiles> ranking;  // candidates that fit, best first by the model
  int accumulators = 1;            // accumulators per output element
  double cycles = 0;               // predicted for `tiles`, to compare forms (kCyclesPerSecond)
  bool float_accumulators = true;
  std::optional<GroupedGemm> groups = std::nullopt;  // grouped GEMM: a tile has rows of one group
  // Set when gate and up are interleaved in one matrix. Loops and tile columns then count the interleaved columns.
  std::shared_ptr<const InterleavedColumns> pairs = nullptr;

  // True if all operands are multiplied as stored.
  bool plain() const {
    return !groups && std::all_of(loops.begin(), loops.end(), [](const GemmLoop& l) { return l.plain(); });
  }
  // True if partial sums are added to the main accumulators, after scaling or conversion to float.
  bool has_partial_accumulators(const GemmLoop& loop) const {
    return loop.scaled() || (dtype == DType::kInt8 && float_accumulators);
  }

  bool tensor_cores() const { return tf32 || bits(dtype) <= 16; }
  int element_bytes() const { return bits(dtype) / 8; }
};

// Bytes copied per stage.
std::int64_t stage_bytes(const GemmForm& form);
// Bytes of an operand's two computed tiles, and of its scales of three tiles (or of three sets of blocks).
std::int64_t transformed_bytes(const GemmForm& form, const GemmOperand& operand, bool left);
std::int64_t scale_bytes(const GemmForm& form, const GemmLoop& loop, const GemmOperand& operand, bool left);
// Bytes of all stages, computed tiles and scales.
std::int64_t tile_bytes(const GemmForm& form);
// Bytes to stage 16 rows of a warp's accumulators for the epilogue. Rows are padded by two gaps of four elements.
std::int64_t staged_bytes(const GemmForm& form);
// Shared memory of a block: the maximum of the tiles and, after them, the staged accumulators of all warps in parts of
// at least 16 rows.
std::int64_t shared_bytes(const GemmForm& form);

// Bytes of a block whose accumulators are all in shared memory as whole rows, padded by eight elements.
std::int64_t whole_rows_bytes(const GemmForm& form);

// `whole_rows`: a tile is as wide as the GEMM, because its block also reduces the rows (schedule/gemm/row_gemm).
std::optional<GemmForm> find_gemm(const Graph& graph, const Kernel& kernel, const Contraction& contraction,
                                  const Target& target, bool whole_rows = false);

// The number of points of the axes, with symbols at their hints.
double points_at_hint(const ExprPool& pool, const std::vector<std::uint32_t>& axes);
// L2 bandwidth of one multiprocessor in bytes per cycle, and L2 latency in cycles. cache_cycles: cycles per 16 of K
// with `at_a_time` blocks per multiprocessor; limited by bandwidth, or by the tiles in flight per latency.
inline constexpr double kCacheBytes = 40, kCacheLatency = 466;
double cache_cycles(const GemmTiles& tiles, double stage_bytes, double at_a_time);
// True if the sums of int8 products fit int32, for K of these axes or `block` of K, if that is not 0.
bool fits_int32_accumulator(const ExprPool& pool, const std::vector<std::uint32_t>& k, std::int64_t block = 0);
// Blocks that a multiprocessor holds at a time, as far as registers (of a thread), shared memory and threads allow.
double resident_blocks(const GemmTiles& tiles, double registers, std::int64_t shared, const Target& target);
// Shared memory for a block's tiles: other GEMMs may share the launch and use up to 40 KiB
// (schedule/lowering/horizontal_fusion).
std::int64_t most_tile_bytes(const Target& target);
// Candidates with their predicted cycles are sorted; returns their tiles.
std::vector<GemmTiles> rank(std::vector<std::pair<double, GemmTiles>>& candidates);
// A description such as "128x256 by warps of 64x64, 32 deep in 4 stages", ", 8 shares of the depth", ", the last 5 of
// 108 blocks".
std::string name_of(const GemmTiles& tiles);

// The candidate tiles, largest first. A line along K has 64 or 128 bytes.
std::vector<GemmTiles> gemm_tile_table(DType multiplied, bool tf32 = false);
// The columns of the widest tile with whole rows.
inline constexpr std::int64_t kMaxRowGemmColumns = 512;

}  // namespace fusec
