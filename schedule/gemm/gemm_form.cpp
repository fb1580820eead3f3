#include "schedule/gemm/gemm_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "ir/type.h"
#include "schedule/gemm/split_k.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

struct GemmSizes {
  double rows, columns, batch, k;
  double terms, left, right;  // the most of a loop; accumulators are those of all loops
  double element_bytes;
  bool tensor_cores;
  double groups = 0;  // groups of rows, each with its own tiles
};

// Cycles per 16 of K on one multiprocessor: the maximum of multiplication (per cycle 1024 multiply-adds of 16 bits on
// tensor cores, half as many of tf32, or 64 without) and of shared memory reads at 128 bytes per cycle.
double product_cycles(const GemmTiles& t, const GemmSizes& sizes) {
  const double accumulators = static_cast<double>(t.rows) * t.columns * sizes.terms;
  const double warps = t.threads() / 32.0;
  if (sizes.tensor_cores)
    return std::max(
        accumulators * 16 / 2048 * sizes.element_bytes,
        0.9 * warps * (t.warp_rows * sizes.left + t.warp_columns * sizes.right) * 16 * sizes.element_bytes / 128);
  const double loads = warps * 4 * (t.warp_rows / 4 * sizes.left + t.warp_columns / 8 * sizes.right);
  return accumulators * 16 / 64 + 2 * loads / 4;
}

// Cycles per 16 of K for transformed operands: about four instructions per element.
double computing_cycles(const GemmForm& form) {
  double elements = 0;
  for (const GemmLoop& loop : form.loops)
    for (const bool left : {true, false})
      for (const GemmOperand& operand : left ? loop.left : loop.right)
        if (operand.transformed()) elements += left ? form.tiles.rows : form.tiles.columns;
  return elements * 16 * 4 / 128;
}

// A model to compare tiles.
double predicted_cycles(const GemmForm& form, const GemmSizes& sizes, const Target& target) {
  const GemmTiles& t = form.tiles;
  const double tiles =
      (std::ceil(sizes.rows / t.rows) + sizes.groups / 2) * std::ceil(sizes.columns / t.columns) * sizes.batch;
  const double accumulators = static_cast<double>(t.rows) * t.columns * sizes.terms;
  const double warps = t.threads() / 32.0;
  const double registers = 64 + accumulators / t.threads();
  const double resident = resident_blocks(t, registers, tile_bytes(form), target);
  const double of_one = std::ceil(tiles / target.multiprocessors);  // tiles of the busiest multiprocessor
  const double at_a_time = std::min(resident, of_one);
  const double from_cache = cache_cycles(t, static_cast<double>(stage_bytes(form)), at_a_time);
  // With few warps the units wait for one another's operands.
  const double busy = std::min(1.0, 0.45 + 0.55 * warps * at_a_time / 8);
  const double steps = sizes.k / 16;
  const double tile = steps * std::max(product_cycles(t, sizes) + computing_cycles(form), from_cache) / busy;
  const double ends = 1500 + accumulators / 64;  // loading the first tiles and storing the results
  return of_one * tile + std::ceil(of_one / at_a_time) * ends;
}

// The candidate dtypes for multiplication, best first.
std::vector<DType> multiplied_dtypes(const ExprPool& pool, const Contraction& contraction, const Target& target) {
  const ScalarType accumulators = pool[contraction.loops[0].terms[0].reduction].type;
  if (accumulators == ScalarType::kInt32) return {DType::kInt8};
  if (accumulators != ScalarType::kFloat32) return {};
  std::vector<DType> dtypes{DType::kInt8, DType::kFloat16, DType::kBFloat16, DType::kFloat32};
  if (contraction.tensor_dtype) dtypes = {*contraction.tensor_dtype};
  if (target.compute_capability >= 89) dtypes.insert(dtypes.begin(), DType::kFloat8E4M3FN);
  return dtypes;
}

// Zero points are subtracted from integer accumulators only, and from one operand per term.
bool takes_offsets(const GemmForm& form, const Contraction& contraction) {
  for (std::size_t i = 0; i < form.loops.size(); ++i)
    for (const ContractionTerm& term : contraction.loops[i].terms) {
      const bool left = form.loops[i].left[term.left].offset != kNoExpr;
      const bool right = form.loops[i].right[term.right].offset != kNoExpr;
      if ((left && right) || ((left || right) && form.float_accumulators)) return false;
    }
  return true;
}

bool alike(const GemmForm& form, bool left) {
  std::optional<bool> k_major;
  for (const GemmLoop& loop : form.loops)
    for (const GemmOperand& operand : left ? loop.left : loop.right) {
      if (k_major && *k_major != operand.k_major) return false;
      k_major = operand.k_major;
    }
  return true;
}

}  // namespace

double points_at_hint(const ExprPool& pool, const Axes& axes) {
  double count = 1;
  for (const std::uint32_t a : axes)
    count *= std::max(1.0, static_cast<double>(value_at_hint(pool.extent(a), pool.bounds().symbols)));
  return count;
}

bool fits_int32_accumulator(const ExprPool& pool, const Axes& k, std::int64_t block) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) / (128 * 128) - 1;
  IndexExpr count = 1;
  for (const std::uint32_t a : k) count *= pool.extent(a);
  return (block == 0 ? range_of(count, pool.bounds()).max : block) <= kMost;
}

double resident_blocks(const GemmTiles& tiles, double registers, std::int64_t shared, const Target& target) {
  const double threads = tiles.threads();
  return std::max(
      1.0, std::min({std::floor(target.registers_per_multiprocessor / (registers * threads)),
                     std::floor(static_cast<double>(target.shared_bytes_per_block) / static_cast<double>(shared)),
                     std::floor(target.max_threads_per_multiprocessor / threads)}));
}

std::int64_t most_tile_bytes(const Target& target) {
  return target.shared_bytes_per_block - (40 << 10);
}

std::vector<GemmTiles> rank(std::vector<std::pair<double, GemmTiles>>& candidates) {
  std::ranges::stable_sort(candidates, {}, [](const auto& candidate) { return candidate.first; });
  std::vector<GemmTiles> ranking;
  for (const auto& [cycles, tiles] : candidates) ranking.push_back(tiles);
  return ranking;
}

std::int64_t stage_bytes(const GemmForm& form) {
  std::int64_t most = 0;
  for (const GemmLoop& loop : form.loops) {
    std::int64_t bits_deep = 0;  // per step of K
    for (const bool left : {true, false})
      for (const GemmOperand& operand : left ? loop.left : loop.right) {
        const int across = left ? form.tiles.rows : form.tiles.columns;
        if (!operand.transformed()) bits_deep += across * 8ll * form.element_bytes();
        for (const GemmOperand& copy : operand.copies) bits_deep += std::int64_t{across} * copy.element_bits;
      }
    most = std::max(most, bits_deep * form.tiles.k / 8);
  }
  return most;
}

std::int64_t transformed_bytes(const GemmForm& form, const GemmOperand& operand, bool left) {
  const int across = left ? form.tiles.rows : form.tiles.columns;
  return operand.transformed() ? 2ll * across * form.tiles.k * form.element_bytes() : 0;
}

std::int64_t scale_bytes(const GemmForm& form, const GemmLoop& loop, const GemmOperand& operand, bool left) {
  if (operand.scales.empty()) return 0;
  return 3ll * 4 * loop.blocks_per_tile(form.tiles.k) * (left ? form.tiles.rows : form.tiles.columns);
}

std::int64_t tile_bytes(const GemmForm& form) {
  std::int64_t shared_end = 0;
  for (const GemmLoop& loop : form.loops) {
    std::int64_t of_loop = 0;
    for (const bool left : {true, false})
      for (const GemmOperand& operand : left ? loop.left : loop.right)
        of_loop += transformed_bytes(form, operand, left) + scale_bytes(form, loop, operand, left);
    shared_end = std::max(shared_end, of_loop);
  }
  return stage_bytes(form) * form.tiles.stages + shared_end;
}

std::int64_t staged_bytes(const GemmForm& form) {
  return 16ll * (form.tiles.warp_columns + 8) * 4 * form.accumulators;
}

std::int64_t shared_bytes(const GemmForm& form) {
  return std::max(tile_bytes(form), staged_bytes(form) * form.tiles.threads() / 32);
}

std::int64_t whole_rows_bytes(const GemmForm& form) {
  return std::int64_t{form.tiles.rows} * (form.tiles.columns + 8) * 4 * form.accumulators;
}

std::vector<GemmTiles> gemm_tile_table(DType multiplied, bool tf32) {
  if (bits(multiplied) == 32 && !tf32)
    return {
        {.rows = 128, .columns = 128, .warp_rows = 32, .warp_columns = 64, .k = 16, .stages = 3},
        {.rows = 128, .columns = 64, .warp_rows = 32, .warp_columns = 64, .k = 16, .stages = 3},
        {.rows = 64, .columns = 128, .warp_rows = 32, .warp_columns = 64, .k = 16, .stages = 3},
        {.rows = 64, .columns = 64, .warp_rows = 16, .warp_columns = 32, .k = 16, .stages = 3},
        {.rows = 32, .columns = 64, .warp_rows = 16, .warp_columns = 32, .k = 16, .stages = 3},
        {.rows = 16, .columns = 64, .warp_rows = 16, .warp_columns = 32, .k = 16, .stages = 3},
    };
  std::vector<GemmTiles> table = {
      {.rows = 128, .columns = 256, .warp_rows = 64, .warp_columns = 64},
      {.rows = 128, .columns = 128, .warp_rows = 64, .warp_columns = 64},
      {.rows = 128, .columns = 64, .warp_rows = 64, .warp_columns = 32},
      {.rows = 64, .columns = 128, .warp_rows = 32, .warp_columns = 64},
      {.rows = 64, .columns = 64, .warp_rows = 32, .warp_columns = 32},
      {.rows = 32, .columns = 128, .warp_rows = 32, .warp_columns = 32},
      {.rows = 32, .columns = 64, .warp_rows = 16, .warp_columns = 32},
      {.rows = 16, .columns = 128, .warp_rows = 16, .warp_columns = 32},
      {.rows = 16, .columns = 64, .warp_rows = 16, .warp_columns = 16},
      {.rows = 16, .columns = 32, .warp_rows = 16, .warp_columns = 16, .k = 64},
  };
  for (GemmTiles& t : table) t.k = t.k * 16 / bits(multiplied);
  return table;
}

double cache_cycles(const GemmTiles& t, double stage_bytes, double at_a_time) {
  return stage_bytes / t.k * 16 / std::min(kCacheBytes, at_a_time * (t.stages - 1) * stage_bytes / kCacheLatency);
}

std::string name_of(const GemmTiles& t) {
  std::string more;
  if (t.split_k > 1) more = fmt::format(", {} shares of the depth", t.split_k);
  return fmt::format("{}x{} by warps of {}x{}, {} deep in {} stages{}", t.rows, t.columns, t.warp_rows, t.warp_columns,
                     t.k, t.stages, more);
}

namespace {

// The candidates with whole rows: fewer rows per block, so that all multiprocessors have blocks.
std::vector<GemmTiles> whole_row_table(DType multiplied) {
  std::vector<GemmTiles> table = gemm_tile_table(multiplied);
  const int k = table[0].k, stages = table[0].stages, narrow = bits(multiplied) == 32 ? 16 : 32;
  constexpr int kRegisters = 1 << 16, kBeside = 80;  // of a block; of a thread besides its accumulators
  for (const int columns : {128, 256, int{kMaxRowGemmColumns}})
    for (const int rows : {64, 32, 16}) {
      const bool known =
          std::ranges::any_of(table, [&](const GemmTiles& t) { return t.rows == rows && t.columns == columns; });
      const int warp_rows = std::min(rows, rows == 64 ? 32 : narrow), warp_columns = rows == 64 ? 64 : 32;
      const GemmTiles tiles{rows, columns, warp_rows, warp_columns, k, stages};
      if (!known && tiles.threads() * kBeside + rows * columns <= kRegisters) table.push_back(tiles);
    }
  return table;
}

constexpr int kMaxGemmAccumulators = 128;        // per thread, in registers
constexpr std::size_t kMaxSplitKCandidates = 3;  // candidates with split-K
constexpr int kMostGroups = 1024;                // groups whose ends a block can keep
constexpr int kLeastPaired = 32;                 // a warp's columns; pairs leave half as many results

// The best number of splits for the tiles, with its cycles.
std::optional<std::pair<double, GemmTiles>> best_split_k(GemmForm form, const GemmSizes& sizes, const Target& target) {
  std::optional<std::pair<double, GemmTiles>> best;
  GemmTiles& t = form.tiles;
  const double padded = std::ceil(sizes.rows / t.rows) * t.rows * std::ceil(sizes.columns / t.columns) * t.columns;
  const double tiles = padded / (t.rows * t.columns) * sizes.batch, steps = std::ceil(sizes.k / t.k);
  const int together = steps_per_scale_block(form.loops[0].block, t.k);
  for (const int split_k : split_k_candidates(tiles, steps, together, target)) {
    GemmSizes shared = sizes;
    shared.batch *= split_k;
    shared.k = steps_per_split(steps, together, split_k) * t.k;
    const double accumulators = padded * sizes.batch * sizes.terms;
    const double cycles = split_k_cycles(predicted_cycles(form, shared, target), accumulators, split_k, target);
    if (best && best->first <= cycles) continue;
    best = {cycles, t};
    best->second.split_k = split_k;
  }
  return best;
}

// Ranks the tiles for the form's operands; false if there are none. `share`: tries split-K if there are few tiles.
bool rank_tiles(GemmForm& form, const GemmSizes& sizes, const Target& target, bool whole_rows, bool share) {
  const std::int64_t most_shared = most_tile_bytes(target);
  // The partial sums of a block of K need their own registers.
  const bool in_blocks = std::ranges::any_of(form.loops, [](const GemmLoop& loop) { return loop.block != 0; });
  const double accumulators = sizes.terms * (in_blocks ? 2 : 1);
  // A scale block, or the part of it in a tile, must be whole mma steps of 32 bytes along K.
  const auto accumulates_blocks = [&](int k) {
    return std::ranges::all_of(form.loops, [&](const GemmLoop& loop) {
      return k / loop.blocks_per_tile(k) % (32 / form.element_bytes()) == 0;
    });
  };
  GemmForm tried = form;
  std::vector<std::pair<double, GemmTiles>> ranked, shared;
  for (GemmTiles& t = tried.tiles;
       const GemmTiles& row : whole_rows ? whole_row_table(form.dtype) : gemm_tile_table(form.dtype, form.tf32)) {
    t = row;
    if (whole_rows && (t.columns < sizes.columns || whole_rows_bytes(tried) > most_shared)) continue;
    if (t.warp_rows * t.warp_columns / 32 * accumulators > kMaxGemmAccumulators || !accumulates_blocks(t.k)) continue;
    if (form.pairs && t.warp_columns < kLeastPaired) continue;
    while (t.stages > 2 && tile_bytes(tried) > most_shared) --t.stages;
    if (t.stages < 3) continue;
    ranked.emplace_back(predicted_cycles(tried, sizes, target), t);
    if (share && !whole_rows)
      if (const auto best = best_split_k(tried, sizes, target)) shared.push_back(*best);
  }
  if (ranked.empty()) return false;
  const auto by_cycles = [](const auto& tiles) { return tiles.first; };
  std::ranges::stable_sort(shared, {}, by_cycles);
  shared.resize(std::min(shared.size(), kMaxSplitKCandidates));
  ranked.insert(ranked.end(), shared.begin(), shared.end());
  form.ranking = rank(ranked);
  form.tiles = form.ranking.front();
  form.cycles = ranked.front().first;
  return true;
}

std::optional<GemmForm> find_gemm(const Graph& graph, const ExprPool& pool, const Contraction& contraction,
                                  const Target& target, const std::optional<GroupedGemm>& groups, DType multiplied,
                                  bool tf32, bool whole_rows, std::shared_ptr<const InterleavedColumns> pairs) {
  GemmForm form{.dtype = multiplied,
                .tf32 = tf32,
                .loops = {},
                .tiles = {},
                .ranking = {},
                .accumulators = static_cast<int>(term_count(contraction))};
  GemmSizes sizes{.rows = points_at_hint(pool, contraction.rows),
                  .columns = points_at_hint(pool, contraction.columns),
                  .batch = points_at_hint(pool, contraction.batch),
                  .k = 0,
                  .terms = static_cast<double>(term_count(contraction)),
                  .left = 0,
                  .right = 0,
                  .element_bytes = static_cast<double>(form.element_bytes()),
                  .tensor_cores = form.tensor_cores()};
  const auto holds = holds_within_groups(pool, contraction, groups);
  for (const ContractionLoop& loop : contraction.loops) {
    GemmLoop operands;
    for (const bool left : {true, false})
      for (const ExprId operand_expr : left ? loop.left : loop.right) {
        const OperandAxes axes{left ? contraction.rows : contraction.columns, loop.k, holds,
                               groups ? groups->number : kNoExpr};
        auto operand = find_gemm_operand(graph, pool, operand_expr, axes, multiplied, operands.block);
        if (!operand) return std::nullopt;
        (left ? operands.left : operands.right).push_back(std::move(*operand));
      }
    sizes.left = std::max(sizes.left, static_cast<double>(loop.left.size()));
    sizes.right = std::max(sizes.right, static_cast<double>(loop.right.size()));
    sizes.k += points_at_hint(pool, loop.k);
    form.loops.push_back(std::move(operands));
  }
  form.groups = groups;
  form.pairs = std::move(pairs);
  if (form.pairs && !form.tensor_cores()) return std::nullopt;
  if (groups) sizes.groups = points_at_hint(pool, {contraction.expert_index->axis});
  form.float_accumulators = pool[contraction.loops[0].terms[0].reduction].type == ScalarType::kFloat32;
  if (!takes_offsets(form, contraction)) return std::nullopt;
  for (std::size_t i = 0; i < form.loops.size(); ++i)
    if (multiplied == DType::kInt8 && form.float_accumulators &&
        !fits_int32_accumulator(pool, contraction.loops[i].k, form.loops[i].block))
      return std::nullopt;
  // tf32 operands go to the tensor cores as whole words. Transformed operands use fused multiply-adds instead.
  if (tf32 && !std::ranges::all_of(form.loops, [](const GemmLoop& l) { return l.plain(); })) return std::nullopt;
  // Without tensor cores the layouts of all operands determine which rows and columns a lane has.
  if (!form.tensor_cores() && !(alike(form, true) && alike(form, false))) return std::nullopt;
  if (!rank_tiles(form, sizes, target, whole_rows, can_split_k(pool, contraction, form, target))) return std::nullopt;
  return form;
}

std::optional<GemmForm> find_gemm(const Graph& graph, const Kernel& kernel, const Contraction& contraction,
                                  const Target& target, bool whole_rows,
                                  const std::shared_ptr<const InterleavedColumns>& pairs) {
  std::optional<GroupedGemm> groups;
  if (contraction.expert_index) {
    groups = find_grouped_gemm(kernel.pool, contraction);
    const auto count = kernel.pool.extent(contraction.expert_index->axis).as_constant();
    if (!groups || !contraction.batch.empty() || !count || *count > kMostGroups) return std::nullopt;
  }
  for (const ExprId value : contraction.row_values)
    if (!groups || value != groups->number) return std::nullopt;
  for (const DType multiplied : multiplied_dtypes(kernel.pool, contraction, target))
    for (const bool tf32 : {true, false}) {
      if (tf32 && (multiplied != DType::kFloat32 || whole_rows || !kernel.numerics.allow_tf32)) continue;
      if (auto form = find_gemm(graph, kernel.pool, contraction, target, groups, multiplied, tf32, whole_rows, pairs))
        return form;
    }
  return std::nullopt;
}

}  // namespace

std::optional<GemmForm> find_gemm(const Graph& graph, const Kernel& kernel, const Contraction& contraction,
                                  const Target& target, bool whole_rows) {
  if (auto form = find_gemm(graph, kernel, contraction, target, whole_rows, nullptr); form || whole_rows) return form;
  auto found = find_interleaved_columns(kernel, contraction);
  if (!found) return std::nullopt;
  const auto pairs = std::make_shared<const InterleavedColumns>(*std::move(found));
  return find_gemm(graph, pairs->kernel, pairs->contraction, target, false, pairs);
}

}  // namespace fusec
