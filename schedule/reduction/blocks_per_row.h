// Few long rows, and such as no block holds, are divided among blocks: those of a cluster, which reduce through one
// another's shared memory; those of a cohort, which do so through global memory and wait for one another within one
// kernel (codegen/reduction/resident_blocks); or chunks, blocks that know nothing of one another and leave partial
// results for the next kernel. Decided here, for the schedule (schedule/reduction/row_layout) and for what is predicted
// of it.
#pragma once

#include <cstdint>

#include "schedule/target/target.h"

namespace fusec {

struct RowsToReduce {
  std::int64_t blocks = 1;     // with one to a row, or to 32 neighbouring ones
  std::int64_t length = 1;     // elements of a row, or of the 32
  int stages = 1;              // reductions one after the other
  int passes = 1;              // over a row that is read for each of them: one where they are made in one
  bool columns = false;        // and the row is stored
  double bytes = 4;            // of an element that is read, of the widest tensor
  double bytes_read = 4;       // of one of all tensors
  double on_chip_bytes = 4;    // of one where the row is kept
  int rows_per_block = 1;      // rows that a block has at once, whose partial results chunks read anew for each stage
  double partial_bytes = 4;    // of a partial result that chunks leave for such rows
  double broadcast_bytes = 0;  // of what all rows share, where it lies differently to each row's vectors
  double functions = 0;        // of an element (Work::special), where they are counted
};

struct BlocksPerRow {
  int cluster = 1, resident_blocks = 1, chunks = 1;  // blocks of a row
  double on_chip = 1;                                // the share of a row that they keep, and read once
};

BlocksPerRow choose_blocks_per_row(const RowsToReduce& rows, const Target& target);

// Of rows that lie side by side, some to a block: no clusters. `held`: the share of a row that a block reads once.
int chunks_of_columns(const RowsToReduce& rows, const Target& target, double on_chip = 0);

// As many blocks that wait for one another and keep such rows between them, where so few can, as are predicted to take
// the least time; 0: none can.
int resident_blocks_of_columns(const RowsToReduce& rows, std::int64_t fewest, const Target& target);

// Each reads what all have left of two reductions of each row: of so many at most a thirty-second of the rows' bytes.
std::int64_t max_blocks_with_few_partials(const RowsToReduce& rows);

// Blocks that wait for one another have to be there at once, beside those of other launches that wait likewise: so few
// that eight launches at a time cannot fill the device with blocks that wait for such as have not begun.
int max_resident_blocks(const Target& target);

inline constexpr std::int64_t kOnChipOfColumns = 1024;   // elements of a row that threads side by side keep
inline constexpr std::int64_t kOnChipOfBlock = 1 << 15;  // elements of a row, of 32 bits, that a block's registers hold

}  // namespace fusec
