// A product whose factors lie in memory so that blocks can copy them as they are, 16 bytes at a time, and how it is cut
// into tiles.
//
//   linear     x[m, k], w[n, k]        neighbours of both are neighbours along the depth
//   matmul     x[m, k], w[k, n]        those of w along the columns
//
// A factor's position in its tensor must be one part over the product's rows (or columns) and batch and one over the
// depth; several axes may stand for each (heads, groups, flattened dimensions). Factors that are computed are made of
// what is copied so (schedule/gemm/gemm_operand.h). What is gathered, guarded or not aligned is none of these:
// codegen/gemm/contraction makes it element by element.
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
  std::vector<GemmOperand> left, right;  // as the product's loop has them
  std::int64_t block = 0;                // of the depth, for which factors' scales are the same; 0: all of it
  // Of a tile that deep: 1 where a block is one tile or several.
  int blocks_of_tile(int k) const {
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

// What a block makes, and each of its warps. Off the tensor cores a warp's lanes are 4 by 8, with 8x8 or 4x4 sums each.
struct GemmTiles {
  int rows = 0, columns = 0;
  int warp_rows = 0, warp_columns = 0;
  int k = 32;
  int stages = 4;          // tiles along the depth that are in shared memory or on the way there
  int split_k = 1;         // of the depth, each a block's (schedule/gemm/split_k.h)
  int stream_k_tiles = 0;  // the last tiles, whose depth so many blocks share (schedule/gemm/stream_k.h)
  int stream_k_blocks = 0;

  int warps_down() const { return rows / warp_rows; }
  int warps_across() const { return columns / warp_columns; }
  int threads() const { return warps_down() * warps_across() * 32; }
};

// Of the multiprocessors by which ways of products are compared; beside times of launches and memory, so many make a
// second on every target.
inline constexpr double kCyclesASecond = 1.5e9;

struct GemmForm {
  // What is multiplied: float16, bfloat16, int8 (sums are int32) or, from sm_89, float8 of either kind (e4m3 stands for
  // both) on tensor cores, float32 in lanes or, where that is allowed, on tensor cores as tf32.
  DType dtype = DType::kFloat16;
  bool tf32 = false;
  std::vector<GemmLoop> loops;
  GemmTiles tiles;                 // the first of:
  std::vector<GemmTiles> ranking;  // those that fit, the best first, as predicted
  int accumulators = 1;            // of each element of the space
  double cycles = 0;               // of the first of them, to compare forms with one another (kCyclesASecond)
  bool float_accumulators = true;
  std::optional<GroupedGemm> groups = std::nullopt;  // of rows, each with a matrix of its own; a tile has rows of one
  // Of whose one sum the form is, where two sums' columns take turns: loops and tiles' columns are those of that.
  std::shared_ptr<const InterleavedColumns> pairs = nullptr;

  // All factors are multiplied as they lie in memory.
  bool plain() const {
    return !groups && std::all_of(loops.begin(), loops.end(), [](const GemmLoop& l) { return l.plain(); });
  }
  // Sums that are made apart of what they are added to, scaled or as floats.
  bool in_parts(const GemmLoop& loop) const { return loop.scaled() || (dtype == DType::kInt8 && float_accumulators); }

  bool tensor_cores() const { return tf32 || bits(dtype) <= 16; }
  int element_bytes() const { return bits(dtype) / 8; }
};

// Of what is copied for one stage.
std::int64_t stage_bytes(const GemmForm& form);
// Of the two tiles that are made of what is copied, and of the scales of three tiles, or of three blocks of several.
std::int64_t transformed_bytes(const GemmForm& form, const GemmOperand& operand, bool left);
std::int64_t scale_bytes(const GemmForm& form, const GemmLoop& loop, const GemmOperand& operand, bool left);
// Of all stages and what is made of them.
std::int64_t tile_bytes(const GemmForm& form);
// Of 16 rows of a warp's sums on their way to what stands behind the product: rows have two gaps of four.
std::int64_t staged_bytes(const GemmForm& form);
// Of a block: tiles, and behind them in time, all warps' sums in parts of 16 rows at least.
std::int64_t shared_bytes(const GemmForm& form);

// Of a block whose sums stand in shared memory all at once: rows have a gap of eight.
std::int64_t whole_rows_bytes(const GemmForm& form);

// `whole_rows`: a tile is as wide as the product, for rows that are reduced by the block that makes them
// (schedule/gemm/row_gemm).
std::optional<GemmForm> find_gemm(const Graph& graph, const Kernel& kernel, const Contraction& product,
                                  const Target& target, bool whole_rows = false);

// The product of the axes' extents at the symbols' hints.
double points_at_hint(const ExprPool& pool, const std::vector<std::uint32_t>& axes);
// Of 16 along the depth, as models of tiles have it: a multiprocessor takes so many bytes a cycle from the L2 cache, or
// what its tiles on the way are in one latency.
inline constexpr double kCacheBytes = 40, kCacheLatency = 466;
double cache_cycles(const GemmTiles& tiles, double stage_bytes, double at_a_time);
// "128x256 by warps of 64x64, 32 deep in 4 stages", ", 8 shares of the depth", ", the last 5 of 108 blocks".
std::string name_of(const GemmTiles& tiles);

// The tiles that are looked among, largest first. Lines along the depth have 64 bytes, or 128.
std::vector<GemmTiles> gemm_tile_table(DType multiplied, bool tf32 = false);
// The widest tile of whole rows has so many columns.
inline constexpr std::int64_t kMaxRowGemmColumns = 512;

}  // namespace fusec
