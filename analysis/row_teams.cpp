#include "analysis/row_teams.h"

#include <algorithm>
#include <cmath>

namespace fusec {
namespace {

constexpr int kLargestCluster = 8;  // that every device with clusters can launch
constexpr double kReducing = 4096;  // bytes of shared memory

// A block alone on a multiprocessor gets a few times its fair share of the bandwidth.
double rate(double blocks, const Target& target) {
  return std::min(target.bandwidth, blocks * 4 * target.bandwidth / target.multiprocessors);
}

// Where blocks are few, the multiprocessors that have one take as long as others would share.
double seconds_of_functions(double functions, double blocks, const Target& target) {
  return functions / (target.special_rate * std::min(1.0, blocks / target.multiprocessors));
}

// How often what is not held is read.
int loops_of(const RowsToReduce& rows, double held) {
  return (held > 0 ? rows.passes : rows.stages) + (rows.columns ? 1 : 0);
}

// What all rows share is asked for again, around each vector, where blocks have no room for it beside what they keep.
double bytes_around(const RowsToReduce& rows, std::int64_t blocks_of_row, const Target& target) {
  const double of_block = static_cast<double>(rows.length) / static_cast<double>(blocks_of_row);
  const bool fits = of_block * (rows.bytes_kept + rows.bytes_beside) <= target.shared_bytes_per_block - kReducing;
  return fits ? 0 : rows.bytes_beside;
}

// `held`: the share of a row that is read once.
double seconds(const RowsToReduce& rows, std::int64_t blocks_of_row, int launches, double held, const Target& target) {
  const double reads = held + (1 - held) * loops_of(rows, held);
  const double elements = static_cast<double>(rows.blocks) * static_cast<double>(rows.length);
  const double of_element =
      rows.bytes_read * reads + (rows.columns ? rows.bytes : 0) + bytes_around(rows, blocks_of_row, target);
  const auto blocks = static_cast<double>(rows.blocks * blocks_of_row);
  const double moved = elements * of_element / rate(blocks, target);
  return launches * target.launch_seconds +
         std::max(moved, seconds_of_functions(rows.functions * elements, blocks, target));
}

bool has_clusters(const Target& target) {
  return target.compute_capability >= 90 && target.compute_capability < 120;
}

// The share of a row that blocks keep: in registers, or a block alone in shared memory. What lies differently goes
// through that as well; element by element it takes about as long as reading the row again.
double held_by(int blocks, const RowsToReduce& rows, const Target& target) {
  constexpr double kOfTurn = 16 * 1024;  // bytes of all threads' vectors
  double elements = static_cast<double>(blocks * kHeldByBlock) * 4 / std::max(4.0, rows.bytes_kept);
  if (blocks == 1 && !has_clusters(target)) {
    const double beside = 1 + rows.bytes_beside / rows.bytes_kept;
    const double turns = std::floor((target.shared_bytes_per_block - kReducing) / (kOfTurn * beside));
    elements = std::max(elements, turns * kOfTurn / rows.bytes_kept);
  }
  if (has_clusters(target)) return static_cast<double>(rows.length) <= elements ? 1 : 0;
  return std::min(1.0, elements / static_cast<double>(rows.length));
}

// Blocks of which two are on a multiprocessor, so that one loads while the other stores; or one alone. An eighth of
// what registers hold is left to ptxas, which spills otherwise, and another one where it puts several tensors together.
int fewest_of_cohort(const RowsToReduce& rows, const Target& target) {
  const int eighths = rows.bytes_read > rows.bytes_kept ? 6 : 7;
  const double held = static_cast<double>(kHeldByBlock) * eighths / 8 * 4 / std::max(4.0, rows.bytes_kept);
  for (const double of_block : {held / 2, held}) {
    const double blocks = std::ceil(static_cast<double>(rows.length) / of_block);
    if (blocks <= largest_cohort(target)) return std::max(2, static_cast<int>(blocks));
  }
  return 0;
}

// Where a row is read more than once otherwise. The counters are cleared by a launch of their own; for each reduction a
// block says that it has come, sees that all have, and reads what they have left.
double seconds_of_cohort(const RowsToReduce& rows, int blocks, const Target& target) {
  return seconds(rows, blocks, 2, 1, target) + 3 * rows.stages * target.latency_seconds;
}

// Each chunk reads what all have left of the rows side by side: a quarter of its own elements, no more.
std::int64_t most_chunks(const RowsToReduce& rows) {
  constexpr double kShare = 4;
  const int times = rows.stages - 1 + (rows.columns ? 1 : 0);
  if (rows.side_by_side == 1 || times == 0) return rows.length;
  const double of_row = static_cast<double>(rows.length) / rows.side_by_side * rows.bytes_read;
  return static_cast<std::int64_t>(std::sqrt(of_row / (rows.bytes_left * kShare * times)));
}

// Chunks of rows that are too few to keep the device busy, where the launches more that they take are worth it.
int chunks_of(RowsToReduce rows, double seconds_without, const Target& target) {
  // Elements of a chunk: what threads do to combine them, and to add up what chunks have left, is little beside that.
  constexpr std::int64_t kShortest = 4096;
  constexpr double kShortestBytes = 32 * 1024;  // of rows that do not lie side by side
  const auto shortest = rows.side_by_side > 1
                            ? kShortest
                            : std::max(kShortest, static_cast<std::int64_t>(kShortestBytes / rows.bytes_read));
  rows.stages = rows.passes;
  const std::int64_t wanted = 8 * target.multiprocessors / rows.blocks;
  const std::int64_t chunks = std::min({wanted, rows.length / shortest, most_chunks(rows)});
  constexpr double kWorthIt = 0.8;
  if (chunks < 2 || seconds(rows, chunks, rows.stages + 1, 0, target) >= kWorthIt * seconds_without) return 1;
  return static_cast<int>(chunks);
}

}  // namespace

int largest_cohort(const Target& target) {
  return target.multiprocessors / 8;
}

int chunks_of_columns(const RowsToReduce& rows, const Target& target, double held) {
  return chunks_of(rows, seconds(rows, 1, 1, held, target), target);
}

std::int64_t blocks_that_leave_little(const RowsToReduce& rows) {
  constexpr double kLeft = 8, kShare = 32;  // bytes
  const double of_row = static_cast<double>(rows.length) / rows.side_by_side * rows.bytes_read;
  return std::max<std::int64_t>(2, std::llround(std::sqrt(of_row / (kLeft * kShare))));
}

int cohort_of_columns(const RowsToReduce& rows, std::int64_t fewest, const Target& target) {
  constexpr double kWorthBlock = 0.98;
  fewest = std::max<std::int64_t>(2, fewest);
  const std::int64_t most =
      std::min<std::int64_t>(largest_cohort(target), std::max(fewest, blocks_that_leave_little(rows)));
  int best = 0;
  double least = 0;
  for (auto blocks = static_cast<int>(std::min<std::int64_t>(fewest, most + 1)); blocks <= most; ++blocks) {
    const double now = seconds_of_cohort(rows, blocks, target);
    if (best > 0 && now >= kWorthBlock * least) continue;
    best = blocks;
    least = now;
  }
  return best;
}

// A row is read once wherever some blocks hold it together, but for a small rest; what is predicted decides which.
RowTeams teams_of(const RowsToReduce& rows, const Target& target) {
  constexpr double kWorthCluster = 0.9, kWorthBlock = 0.98;  // of more blocks, of one more
  constexpr double kHeldEnough = 0.9;
  RowTeams teams;
  double held = held_by(1, rows, target), best = seconds(rows, 1, 1, held, target);
  if (has_clusters(target))
    for (int blocks = 2; blocks <= kLargestCluster; blocks *= 2) {
      if (rows.length / blocks < 2048) break;
      const double held_here = held_by(blocks, rows, target), now = seconds(rows, blocks, 1, held_here, target);
      if (now >= kWorthCluster * best) continue;
      best = now;
      held = held_here;
      teams.cluster = blocks;
    }
  const int fewest = rows.stages + (rows.columns ? 1 : 0) > 1 ? fewest_of_cohort(rows, target) : 0;
  const bool reads_again = held < kHeldEnough && loops_of(rows, held) > 1;
  for (int blocks = fewest; fewest > 0 && blocks <= largest_cohort(target); ++blocks) {
    const double now = seconds_of_cohort(rows, blocks, target);
    const bool is_first = reads_again && teams.cohort == 1;
    if (!is_first && now >= (teams.cohort > 1 ? kWorthBlock : 1) * best) continue;
    best = now;
    teams = {.cohort = blocks};
  }
  if (teams.cohort > 1) return teams;
  teams.held = held;
  const int chunks = chunks_of(rows, best, target);
  return chunks > 1 ? RowTeams{.chunks = chunks, .held = 0} : teams;
}

}  // namespace fusec
