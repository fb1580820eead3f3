#include "analysis/depth_shares.h"

#include <algorithm>
#include <cmath>

namespace fusec {

bool may_share_depth(const ExprPool& pool, const Product& product, const GemmForm& form, const Target& target) {
  return form.loops.size() == 1 && !form.groups && !form.pairs && is_few_and_deep(pool, product, target);
}

bool is_few_and_deep(const ExprPool& pool, const Product& product, const Target& target) {
  if (product.loops.size() != 1 || !product.row_values.empty()) return false;
  // Shares are chosen for the sizes that are hinted at: whatever comes, tiles are no more than multiprocessors.
  IndexExpr points = 1;
  for (const auto* axes : {&product.batch, &product.rows, &product.columns})
    for (const std::uint32_t a : *axes) points *= pool.extent(a);
  // The models of tiles compare tiles with one another; that a launch more is worth it has to be plain.
  constexpr double kTile = 64 * 64, kLeastDepth = 2048;
  const double tiles = points_at_hint(pool, product.batch) * points_at_hint(pool, product.rows) *
                       points_at_hint(pool, product.columns) / kTile;
  if (static_cast<double>(range_of(simplify(points, pool.bounds()), pool.bounds()).max) / kTile >
      target.multiprocessors)
    return false;
  return tiles <= target.multiprocessors / 4.0 && points_at_hint(pool, product.loops[0].depth) >= kLeastDepth;
}

std::vector<int> depth_shares(double tiles, double steps, int together, const Target& target) {
  constexpr int kLeastSteps = 4;           // of a share
  constexpr double kMostBlocks = 2;        // of a multiprocessor
  constexpr double kEnoughWithout = 0.75;  // of the multiprocessors, which have a tile each
  std::vector<int> counts;
  if (tiles >= kEnoughWithout * target.multiprocessors) return counts;
  for (const int shares : {2, 3, 4, 6, 8, 12, 16, 24, 32})
    if (steps >= std::max(kLeastSteps, together) * shares && tiles * shares <= kMostBlocks * target.multiprocessors)
      counts.push_back(shares);
  return counts;
}

double steps_of_share(double steps, int together, int shares) {
  return std::ceil(std::ceil(steps / together) / shares) * together;
}

double shared_cycles(double cycles, double sums, int shares, const Target& target) {
  constexpr double kLatency = 466, kAtATime = 4;  // shares whose sums a lane reads at a time
  constexpr double kWorthIt = 1.25;
  const double moved =
      2 * 4 * sums * shares / (target.bandwidth / kCyclesASecond);  // as the cost model has it: to memory
  return kWorthIt * (cycles + target.launch_seconds * kCyclesASecond + moved + (1 + shares / kAtATime) * kLatency);
}

}  // namespace fusec
