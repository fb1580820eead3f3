// Few long rows are divided among blocks: those of a cluster, which reduce through one another's shared memory, or
// chunks, blocks that know nothing of one another and leave partial results for the next kernel. Decided here, for the
// schedule (analysis/row_layout) and for what is predicted of it.
#pragma once

#include <cstdint>

#include "analysis/target.h"

namespace fusec {

struct RowsToReduce {
  std::int64_t blocks = 1;  // with one to a row, or to 32 neighbouring ones
  std::int64_t length = 1;  // elements of a row, or of the 32
  int stages = 1;           // reductions one after the other
  bool columns = false;     // and the row is stored
  double bytes = 4;         // of an element that is read
};

struct RowTeams {
  int cluster = 1, chunks = 1;  // blocks of a row
};

RowTeams teams_of(const RowsToReduce& rows, const Target& target);

// Of rows that lie side by side, 32 to a block: no clusters.
int chunks_of_columns(const RowsToReduce& rows, const Target& target);

inline constexpr std::int64_t kHeldByBlock = 1 << 15;  // elements of a row that a block's registers hold

}  // namespace fusec
