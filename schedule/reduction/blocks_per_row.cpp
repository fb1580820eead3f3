#include "schedule/reduction/blocks_per_row.h"

#include <algorithm>
#include <cmath>

namespace fusec {
namespace {

constexpr int kLargestCluster = 8;  // supported by every device with clusters
constexpr double kReducing = 4096;  // bytes of shared memory for the reduction

// Memory bandwidth of `blocks` blocks: a block alone on a multiprocessor gets a few times its share.
double rate(double blocks, const Target& target) {
  return std::min(target.bandwidth, blocks * 4 * target.bandwidth / target.multiprocessors);
}

// Time of special functions. With few blocks, only the multiprocessors that have a block work.
double seconds_of_functions(double functions, double blocks, const Target& target) {
  return functions / (target.special_rate * std::min(1.0, blocks / target.multiprocessors));
}

// How often the part of a row that is not on chip is read.
int loops_of(const RowsToReduce& rows, double on_chip) {
  return (on_chip > 0 ? rows.passes : rows.stages) + (rows.columns ? 1 : 0);
}

// Extra bytes per element for operands shared by all rows: they are read again if blocks have no room for them.
double bytes_around(const RowsToReduce& rows, std::int64_t blocks_of_row, const Target& target) {
  const double of_block = static_cast<double>(rows.length) / static_cast<double>(blocks_of_row);
  const bool fits = of_block * (rows.on_chip_bytes + rows.broadcast_bytes) <= target.shared_bytes_per_block - kReducing;
  return fits ? 0 : rows.broadcast_bytes;
}

// `on_chip`: the fraction of a row that is read once.
double seconds(const RowsToReduce& rows, std::int64_t blocks_of_row, int launches, double on_chip,
               const Target& target) {
  const double reads = on_chip + (1 - on_chip) * loops_of(rows, on_chip);
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

// The fraction of a row that blocks keep: in registers, or a single block in shared memory. Misaligned operands also go
// through shared memory; element by element, that takes about as long as reading the row again.
double on_chip_fraction(int blocks, const RowsToReduce& rows, const Target& target) {
  constexpr double kBytesPerIteration = 16 * 1024;  // bytes of one vector per thread
  double elements = static_cast<double>(blocks * kOnChipOfBlock) * 4 / std::max(4.0, rows.on_chip_bytes);
  if (blocks == 1 && !has_clusters(target)) {
    const double broadcast = 1 + rows.broadcast_bytes / rows.on_chip_bytes;
    const double iterations =
        std::floor((target.shared_bytes_per_block - kReducing) / (kBytesPerIteration * broadcast));
    elements = std::max(elements, iterations * kBytesPerIteration / rows.on_chip_bytes);
  }
  if (has_clusters(target)) return static_cast<double>(rows.length) <= elements ? 1 : 0;
  return std::min(1.0, elements / static_cast<double>(rows.length));
}

// The number of co-resident blocks with which two fit on a multiprocessor, so that one loads while the other stores;
// otherwise with which one fits. One eighth of the registers is left to ptxas, which would spill otherwise; two eighths
// if several tensors are combined.
int min_resident_blocks(const RowsToReduce& rows, const Target& target) {
  const int eighths = rows.bytes_read > rows.on_chip_bytes ? 6 : 7;
  const double on_chip = static_cast<double>(kOnChipOfBlock) * eighths / 8 * 4 / std::max(4.0, rows.on_chip_bytes);
  for (const double of_block : {on_chip / 2, on_chip}) {
    const double blocks = std::ceil(static_cast<double>(rows.length) / of_block);
    if (blocks <= max_resident_blocks(target)) return std::max(2, static_cast<int>(blocks));
  }
  return 0;
}

// For rows that would otherwise be read more than once. Clearing the counters is a separate launch. Each reduction
// costs three latencies: signal arrival, see all arrivals, read the partial results.
double seconds_of_resident_blocks(const RowsToReduce& rows, int blocks, const Target& target) {
  return seconds(rows, blocks, 2, 1, target) + 3 * rows.stages * target.latency_seconds;
}

// The maximum number of chunks: the partial results that each chunk reads are at most a quarter of its own elements.
std::int64_t most_chunks(const RowsToReduce& rows) {
  constexpr double kShare = 4;
  const int times = rows.stages - 1 + (rows.columns ? 1 : 0);
  if (rows.rows_per_block == 1 || times == 0) return rows.length;
  const double of_row = static_cast<double>(rows.length) / rows.rows_per_block * rows.bytes_read;
  return static_cast<std::int64_t>(std::sqrt(of_row / (rows.partial_bytes * kShare * times)));
}

// The number of chunks if there are too few rows to occupy the device and the additional launches pay off; else 1.
int chunks_of(RowsToReduce rows, double seconds_without, const Target& target) {
  // Elements per chunk. Combining threads and partial results then costs little in comparison.
  constexpr std::int64_t kShortest = 4096;
  constexpr double kShortestBytes = 32 * 1024;  // for rows that are not contiguous neighbours
  const auto shortest = rows.rows_per_block > 1
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

int max_resident_blocks(const Target& target) {
  return target.multiprocessors / 8;
}

int chunks_of_columns(const RowsToReduce& rows, const Target& target, double on_chip) {
  return chunks_of(rows, seconds(rows, 1, 1, on_chip, target), target);
}

std::int64_t max_blocks_with_few_partials(const RowsToReduce& rows) {
  constexpr double kLeft = 8, kShare = 32;  // bytes of a partial result; fraction of a row
  const double of_row = static_cast<double>(rows.length) / rows.rows_per_block * rows.bytes_read;
  return std::max<std::int64_t>(2, std::llround(std::sqrt(of_row / (kLeft * kShare))));
}

int resident_blocks_of_columns(const RowsToReduce& rows, std::int64_t fewest, const Target& target) {
  constexpr double kWorthBlock = 0.98;
  fewest = std::max<std::int64_t>(2, fewest);
  const std::int64_t most =
      std::min<std::int64_t>(max_resident_blocks(target), std::max(fewest, max_blocks_with_few_partials(rows)));
  int best = 0;
  double least = 0;
  for (auto blocks = static_cast<int>(std::min<std::int64_t>(fewest, most + 1)); blocks <= most; ++blocks) {
    const double now = seconds_of_resident_blocks(rows, blocks, target);
    if (best > 0 && now >= kWorthBlock * least) continue;
    best = blocks;
    least = now;
  }
  return best;
}

// Co-resident blocks are used if they can keep whole rows and the alternatives would read rows again. Otherwise the
// least predicted time decides.
BlocksPerRow choose_blocks_per_row(const RowsToReduce& rows, const Target& target) {
  constexpr double kWorthCluster = 0.9, kWorthBlock = 0.98;  // required time ratios: twice the blocks, one more block
  constexpr double kOnChipEnough = 0.9;
  BlocksPerRow per_row;
  double on_chip = on_chip_fraction(1, rows, target), best = seconds(rows, 1, 1, on_chip, target);
  if (has_clusters(target))
    for (int blocks = 2; blocks <= kLargestCluster; blocks *= 2) {
      if (rows.length / blocks < 2048) break;
      const double on_chip_here = on_chip_fraction(blocks, rows, target),
                   now = seconds(rows, blocks, 1, on_chip_here, target);
      if (now >= kWorthCluster * best) continue;
      best = now;
      on_chip = on_chip_here;
      per_row.cluster = blocks;
    }
  const int fewest = rows.stages + (rows.columns ? 1 : 0) > 1 ? min_resident_blocks(rows, target) : 0;
  const bool reads_again = on_chip < kOnChipEnough && loops_of(rows, on_chip) > 1;
  for (int blocks = fewest; fewest > 0 && blocks <= max_resident_blocks(target); ++blocks) {
    const double now = seconds_of_resident_blocks(rows, blocks, target);
    const bool is_first = reads_again && per_row.resident_blocks == 1;
    if (!is_first && now >= (per_row.resident_blocks > 1 ? kWorthBlock : 1) * best) continue;
    best = now;
    per_row = {.resident_blocks = blocks};
  }
  if (per_row.resident_blocks > 1) return per_row;
  per_row.on_chip = on_chip;
  const int chunks = chunks_of(rows, best, target);
  return chunks > 1 ? BlocksPerRow{.chunks = chunks, .on_chip = 0} : per_row;
}

}  // namespace fusec
