// Decides how many blocks share a row when rows are few and long, or do not fit in one block. The blocks are a cluster,
// which reduces through distributed shared memory; co-resident blocks, which reduce through global memory and wait for
// each other within one kernel (codegen/reduction/resident_blocks); or chunks, independent blocks that store partial
// results for the next kernel. The schedule (schedule/reduction/row_layout) and the cost model both use the decision.
#pragma once

#include <cstdint>

#include "schedule/target/target.h"

namespace fusec {

struct RowsToReduce {
  std::int64_t blocks = 1;     // with one block per row, or per 32 neighbouring rows
  std::int64_t length = 1;     // elements of a row, or of the 32 rows
  int stages = 1;              // reductions that depend on each other
  int passes = 1;              // reads of the row without keeping it; one if a single pass makes all reductions
  bool columns = false;        // the row is also stored
  double bytes = 4;            // per element read, of the widest tensor
  double bytes_read = 4;       // per element read, over all tensors
  double on_chip_bytes = 4;    // per element, if the row is kept
  int rows_per_block = 1;      // rows per block at once; every stage rereads the partial results of their chunks
  double partial_bytes = 4;    // of a partial result of a chunk, for those rows
  double broadcast_bytes = 0;  // of operands shared by all rows that are aligned differently than a row's vectors
  double functions = 0;        // special functions per element (Work::special), if they are counted
};

struct BlocksPerRow {
  int cluster = 1, resident_blocks = 1, chunks = 1;  // per row
  double on_chip = 1;                                // fraction of a row that they keep and read once
};

BlocksPerRow choose_blocks_per_row(const RowsToReduce& rows, const Target& target);

// For contiguous neighbouring rows, several per block; no clusters. `on_chip`: the fraction of a row that a block reads
// once.
int chunks_of_columns(const RowsToReduce& rows, const Target& target, double on_chip = 0);

// The number of co-resident blocks, at least `fewest`, that keep those rows on chip in the least predicted time; 0 if
// impossible.
int resident_blocks_of_columns(const RowsToReduce& rows, std::int64_t fewest, const Target& target);

// The largest number of blocks that keeps the partial results small. Each block reads the partial results of all for
// two reductions per row; these are at most 1/32 of the rows' bytes.
std::int64_t max_blocks_with_few_partials(const RowsToReduce& rows);

// The limit of co-resident blocks. It is low enough that eight concurrent launches cannot fill the device with blocks
// that wait for blocks that have not started.
int max_resident_blocks(const Target& target);

inline constexpr std::int64_t kOnChipOfColumns =
    1024;  // elements per row kept by blocks of contiguous neighbouring rows
inline constexpr std::int64_t kOnChipOfBlock = 1 << 15;  // 32-bit elements of a row that a block's registers hold

}  // namespace fusec
