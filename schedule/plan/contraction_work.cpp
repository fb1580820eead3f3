#include "schedule/plan/contraction_work.h"

#include <algorithm>
#include <cmath>

#include "ir/type.h"
#include "schedule/gemm/split_k.h"

namespace fusec {
namespace {

constexpr double kTile = 64;       // rows and columns of the tile of a product without pipelined tiles
constexpr double kStepBytes = 64;  // of a tile's line, loaded at a time

// Operations to copy an operand's element to shared memory: address, guard, load, conversion and store.
constexpr double kOperationsOfCopy = 60;

double tiles(double extent, double tile = kTile) {
  return std::ceil(extent / tile);
}

// The tile of a product that a block computes at a time, and its resources.
struct CountedTiles {
  double rows = kTile, columns = kTile, threads = 256;
  double in_flight_bytes = 0, shared = 0;
  double fragments = 0;  // registers per thread for operand fragments
  double split_k = 1;    // splits of K, one per block
};

CountedTiles counted_tiles(const GemmForm& form) {
  const GemmTiles& t = form.tiles;
  CountedTiles tiles{.rows = static_cast<double>(t.rows),
                     .columns = static_cast<double>(form.pairs ? t.columns / 2 : t.columns),
                     .threads = static_cast<double>(t.threads()),
                     .in_flight_bytes = static_cast<double>(stage_bytes(form) * (t.stages - 1)),
                     .shared = static_cast<double>(shared_bytes(form))};
  // Tensor cores hold two K slices of 16; without them a thread holds one slice of 4 for four of its rows at a time.
  for (const GemmLoop& loop : form.loops) {
    const auto left = static_cast<double>(loop.left.size()), right = static_cast<double>(loop.right.size());
    tiles.fragments =
        std::max(tiles.fragments, form.tensor_cores() ? 2 * (left * t.warp_rows + right * t.warp_columns) / 4
                                                      : left * 16 + right * t.warp_columns / 2);
  }
  return tiles;
}

CountedTiles counted_tiles(const ConvolutionForm& form) {
  const GemmTiles& t = form.tiles;
  return {.rows = static_cast<double>(t.rows),
          .columns = static_cast<double>(t.columns),
          .threads = static_cast<double>(t.threads()),
          .in_flight_bytes = static_cast<double>(form.stage_bytes() * (t.stages - 1)),
          .shared = static_cast<double>(form.shared_bytes()),
          .split_k = static_cast<double>(t.split_k)};
}

CountedTiles counted_tiles(const Contraction& contraction) {
  CountedTiles tiles{.threads = contraction.tensor_dtype ? 128.0 : 256.0};
  for (const ContractionLoop& loop : contraction.loops)
    tiles.in_flight_bytes =
        std::max(tiles.in_flight_bytes, static_cast<double>(loop.left.size() + loop.right.size()) * kTile * kStepBytes);
  return tiles;
}

bool of_float8(const ExprPool& pool, const Contraction& contraction) {
  return std::ranges::all_of(contraction.loops, [&](const ContractionLoop& loop) {
    const auto stored = [&](ExprId factor) { return multiplies(DType::kFloat8E4M3FN, pool[factor].dtype); };
    return std::ranges::all_of(loop.left, stored) && std::ranges::all_of(loop.right, stored);
  });
}

// The tiles of the candidate that multiplies a contraction, and how it multiplies.
struct TakenTiles {
  CountedTiles tile;
  bool tensor_cores = false;
  double cost = 1;  // of an operation, relative to a 16-bit one of warpgroups
};

TakenTiles taken_tiles(const KernelPlanner& planner) {
  const Kernel& kernel = planner.shaped();
  const Contraction& contraction = *planner.form().contraction;
  const Target& target = planner.target();
  const GemmForm* gemm = planner.gemm();
  TakenTiles taken{.tile = gemm ? counted_tiles(*gemm) : counted_tiles(contraction)};
  const bool whole = kernel.pool[contraction.loops[0].terms[0].reduction].type == ScalarType::kInt32;
  // With `of_tiles` the chosen tiles are counted; otherwise only whether warpgroups multiply matters.
  const bool of_tiles = gemm ? can_split_k(kernel.pool, contraction, *gemm, target)
                             : whole || of_float8(kernel.pool, contraction) || kernel.numerics.allow_tf32 ||
                                   has_few_tiles_and_large_k(kernel.pool, contraction, target);
  const bool asks = of_tiles || target.mma_sync_rate < 1;
  const WarpgroupGemms* wide = asks ? planner.best_warpgroups() : nullptr;
  const ConvolutionForm* gathered = asks && !gemm ? planner.convolution() : nullptr;
  if (of_tiles && gathered) taken.tile = counted_tiles(*gathered);
  if (of_tiles && gemm) taken.tile.split_k = gemm->tiles.split_k;
  if (of_tiles && wide && (gemm || gathered)) taken.tile.split_k = wide->forms[0].tiles.split_k;
  const bool gathered_bytes = gathered && bits(gathered->dtype) == 8;
  const bool tf32 = (gemm && gemm->tf32) || (gathered && gathered->tf32);
  taken.tensor_cores = gemm ? gemm->tensor_cores() : gathered_bytes || tf32 || contraction.tensor_dtype.has_value();
  // 8-bit operands are faster and tf32 is slower: both count as 16-bit operations of equal time.
  const bool bytes = gathered_bytes || (gemm && bits(gemm->dtype) == 8);
  taken.cost = bytes ? target.float16_rate / target.float8_rate : tf32 ? 2 : 1;
  if (taken.tensor_cores && !wide) taken.cost *= mma_sync_cost(target);
  return taken;
}

}  // namespace

void count_contraction(const KernelPlanner& planner, WorkCounter& count, Work& work) {
  const Kernel& kernel = planner.shaped();
  const Contraction& contraction = *planner.form().contraction;
  const TakenTiles taken = taken_tiles(planner);
  const CountedTiles& tile = taken.tile;
  if (contraction.expert_index) count.choose_along(contraction.expert_index->axis);
  const Axes rows = united(contraction.batch, contraction.rows);
  const double batches = count.points(contraction.batch);
  const double row_tiles = tiles(count.points(contraction.rows), tile.rows);
  const double column_tiles = tiles(count.points(contraction.columns), tile.columns);
  std::vector<ExprId> sums;
  for (const ContractionLoop& loop : contraction.loops)
    for (const ContractionTerm& term : loop.terms) sums.push_back(term.reduction);
  std::vector<ExprId> stops = sums;
  stops.insert(stops.end(), contraction.row_values.begin(), contraction.row_values.end());
  const double padded = taken.cost * batches * row_tiles * tile.rows * column_tiles * tile.columns;
  for (const ContractionLoop& loop : contraction.loops) {
    const double k = count.points(loop.k);
    for (const ContractionTerm& term : loop.terms)
      add_multiply_adds(padded * k, taken.tensor_cores, kernel.pool[term.reduction].type, work);
    count.execute_all(count.between(loop.left, stops), {}, column_tiles, work);
    count.execute_all(count.between(loop.right, stops), {}, row_tiles, work);
  }
  count.execute_all(count.between(contraction.row_values, sums), rows, column_tiles, work);
  count.execute_all(count.between(roots_of(kernel), stops), united(rows, contraction.columns), 1, work);
  work.blocks = batches * row_tiles * column_tiles * tile.split_k;
  if (tile.split_k > 1) {  // partial sums are written and read once
    const double left = 4 * work.blocks * tile.rows * tile.columns * static_cast<double>(sums.size());
    work.written += left;
    work.read += left;
    work.launches = 2;
  }
  work.threads = tile.threads;
  work.in_flight_bytes = tile.in_flight_bytes;
  work.shared = tile.shared;
  // The epilogue runs after the last multiplication, when the fragments are dead.
  work.registers = std::max(work.registers, kAddressRegisters + tile.fragments) +
                   tile.rows * tile.columns / tile.threads * static_cast<double>(sums.size());
}

void count_row_gemm(const KernelPlanner& planner, const WorkCounter& count, Work& work) {
  const RowGemm& form = *planner.form().row_gemm;
  const Target& target = planner.target();
  const Contraction& contraction = form.contraction;
  const GemmForm* pipelined = planner.pipelined_row_gemm();
  const RowGemmTiles layout = tiles_of(form);
  const Axes rows = united(contraction.batch, contraction.rows);
  const double batches = count.points(contraction.batch);
  const double of_block = pipelined ? pipelined->tiles.rows : form.rows;
  // A warp computes 32 columns of the chunk even if only some exist.
  const int chunk_of_warps = contraction.tensor_dtype ? layout.block.threads : layout.block.columns;
  const double chunk = pipelined ? pipelined->tiles.columns : chunk_of_warps;
  const double row_tiles = tiles(count.points(contraction.rows), of_block);
  std::vector<ExprId> stops;
  for (const ContractionLoop& loop : contraction.loops)
    for (const ContractionTerm& term : loop.terms) stops.push_back(term.reduction);
  for (const auto& [twin, sum] : form.accumulator_at_columns) stops.push_back(twin);
  const double columns = tiles(count.points(contraction.columns), chunk) * chunk;
  const bool on_tensor_cores = contraction.tensor_dtype.has_value();
  const double padded = (on_tensor_cores ? mma_sync_cost(target) : 1) * batches * row_tiles * of_block * columns;
  for (const ContractionLoop& loop : contraction.loops) {
    for (const ContractionTerm& term : loop.terms)
      add_multiply_adds(padded * count.points(loop.k), on_tensor_cores, form.kernel.pool[term.reduction].type, work);
    count.execute_all(count.between(loop.left, stops), {}, columns / chunk, work);
    count.execute_all(count.between(loop.right, stops), {}, row_tiles, work);
    if (!pipelined)
      work.float32 +=
          kOperationsOfCopy * batches * row_tiles * count.points(loop.k) * (of_block * columns / chunk + columns);
  }
  count.execute_all(count.between(roots_of(form.kernel), stops), rows, 1, work);
  work.blocks = batches * row_tiles;
  work.threads = pipelined ? pipelined->tiles.threads() : layout.block.threads;
  work.in_flight_bytes = pipelined ? static_cast<double>(stage_bytes(*pipelined) * (pipelined->tiles.stages - 1))
                                   : (of_block + chunk) * kStepBytes;
  if (pipelined) work.shared = static_cast<double>(std::max(tile_bytes(*pipelined), whole_rows_bytes(*pipelined)));
  work.registers += of_block * chunk / work.threads;
}

void count_grouped_gemm(const GroupedImplicitGemm& groups, const Target& target, Work& work) {
  const double as_wide = bits(groups.dtype) == 8    ? target.float16_rate / target.float8_rate
                         : bits(groups.dtype) == 32 ? 2
                                                    : 1;
  work.tensor = 2 * as_wide * mma_sync_cost(target) * groups.multiply_adds();
  work.float32 = groups.instructions;
  work.blocks = groups.blocks;
  work.threads = groups.threads();
  work.shared = static_cast<double>(groups.shared_bytes());
  work.in_flight_bytes = static_cast<double>(16 * groups.positions() * groups.units());
  work.registers = std::max(work.registers, static_cast<double>(groups.registers()));
}

}  // namespace fusec
