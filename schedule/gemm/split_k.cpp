#include "schedule/gemm/split_k.h"

#include <algorithm>
#include <cmath>

namespace fusec {

bool can_split_k(const ExprPool& pool, const Contraction& contraction, const GemmForm& form, const Target& target) {
  return form.loops.size() == 1 && !form.groups && !form.pairs && has_few_tiles_and_large_k(pool, contraction, target);
}

bool has_few_tiles_and_large_k(const ExprPool& pool, const Contraction& contraction, const Target& target) {
  if (contraction.loops.size() != 1 || !contraction.row_values.empty()) return false;
  // The number of splits is chosen for the hinted sizes. For any size, tiles must not exceed multiprocessors.
  IndexExpr points = 1;
  for (const auto* axes : {&contraction.batch, &contraction.rows, &contraction.columns})
    for (const std::uint32_t a : *axes) points *= pool.extent(a);
  // The models compare tiles with one another. The gain of a second launch must be obvious.
  constexpr double kTile = 64 * 64, kMinK = 2048;
  const double tiles = points_at_hint(pool, contraction.batch) * points_at_hint(pool, contraction.rows) *
                       points_at_hint(pool, contraction.columns) / kTile;
  if (static_cast<double>(range_of(simplify(points, pool.bounds()), pool.bounds()).max) / kTile >
      target.multiprocessors)
    return false;
  return tiles <= target.multiprocessors / 4.0 && points_at_hint(pool, contraction.loops[0].k) >= kMinK;
}

std::vector<int> split_k_candidates(double tiles, double steps, int unsplit_steps, const Target& target) {
  constexpr int kMinStepsPerSplit = 4;  // per split
  constexpr double kMaxBlocksPerMultiprocessor = 2;
  constexpr double kEnoughWithout = 0.75;  // no split-K if tiles fill this part of the multiprocessors
  std::vector<int> counts;
  if (tiles >= kEnoughWithout * target.multiprocessors) return counts;
  for (const int split_k : {2, 3, 4, 6, 8, 12, 16, 24, 32})
    if (steps >= std::max(kMinStepsPerSplit, unsplit_steps) * split_k &&
        tiles * split_k <= kMaxBlocksPerMultiprocessor * target.multiprocessors)
      counts.push_back(split_k);
  return counts;
}

double steps_per_split(double steps, int unsplit_steps, int split_k) {
  return std::ceil(std::ceil(steps / unsplit_steps) / split_k) * unsplit_steps;
}

double split_k_cycles(double cycles, double accumulators, int split_k, const Target& target) {
  constexpr double kLatency = 466, kAtATime = 4;  // splits that a lane reads at a time
  constexpr double kWorthIt = 1.25;
  const double moved =
      2 * 4 * accumulators * split_k / (target.bandwidth / kCyclesPerSecond);  // to memory, as in the cost model
  return kWorthIt * (cycles + target.launch_seconds * kCyclesPerSecond + moved + (1 + split_k / kAtATime) * kLatency);
}

}  // namespace fusec
