#include "analysis/row_teams.h"

#include <algorithm>

namespace fusec {
namespace {

constexpr int kLargestCluster = 8;  // that every device with clusters can launch

// A block alone on a multiprocessor gets a few times its fair share of the bandwidth.
double rate(double blocks, const Target& target) {
  return std::min(target.bandwidth, blocks * 4 * target.bandwidth / target.multiprocessors);
}

double seconds(const RowsToReduce& rows, std::int64_t blocks_of_row, int launches, bool held, const Target& target) {
  const double reads = held ? 1 : rows.stages + (rows.columns ? 1 : 0);
  const double elements = static_cast<double>(rows.blocks) * static_cast<double>(rows.length);
  const double bytes = rows.bytes * elements * (reads + (rows.columns ? 1 : 0));
  return launches * target.launch_seconds + bytes / rate(static_cast<double>(rows.blocks * blocks_of_row), target);
}

bool has_clusters(const Target& target) {
  return target.compute_capability >= 90 && target.compute_capability < 120;
}

// Chunks of rows that are too few to keep the device busy, where the launches more that they take are worth it.
int chunks_of(const RowsToReduce& rows, double seconds_without, const Target& target) {
  constexpr std::int64_t kShortest = 4096;  // elements of a chunk
  const std::int64_t wanted = 8 * target.multiprocessors / rows.blocks;
  const std::int64_t chunks = std::min(wanted, rows.length / kShortest);
  constexpr double kWorthIt = 0.8;
  if (chunks < 2 || seconds(rows, chunks, rows.stages + 1, false, target) >= kWorthIt * seconds_without) return 1;
  return static_cast<int>(chunks);
}

}  // namespace

int chunks_of_columns(const RowsToReduce& rows, const Target& target) {
  return chunks_of(rows, seconds(rows, 1, 1, false, target), target);
}

RowTeams teams_of(const RowsToReduce& rows, const Target& target) {
  RowTeams teams;
  double best = seconds(rows, 1, 1, rows.length <= kHeldByBlock, target);
  if (has_clusters(target))
    for (int blocks = 2; blocks <= kLargestCluster; blocks *= 2) {
      if (rows.length / blocks < 2048) break;
      const double now = seconds(rows, blocks, 1, rows.length <= blocks * kHeldByBlock, target);
      if (now >= 0.9 * best) continue;
      best = now;
      teams.cluster = blocks;
    }
  const int chunks = chunks_of(rows, best, target);
  return chunks > 1 ? RowTeams{.cluster = 1, .chunks = chunks} : teams;
}

}  // namespace fusec
