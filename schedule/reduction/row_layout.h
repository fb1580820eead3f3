// Maps threads to rows. A row is taken by a warp, a block, the blocks of a cluster, or co-resident blocks
// (schedule/reduction/blocks_per_row); or by independent blocks, which store partial results for a later kernel. If
// neighbouring rows are contiguous in memory, a row is taken by every 32nd thread of a block.
//
// If only a launch knows the length of a row, the layout has as many threads as the length's hint needs. If the bound
// needs far more threads than the hint, a block keeps the row in shared memory, sized at launch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "schedule/reduction/row_form.h"
#include "schedule/target/target.h"

namespace fusec {

enum class ReductionGroup : std::uint8_t {
  kWarp,    // a warp, or some neighbouring lanes of one; several rows per block
  kBlock,   // the whole block, the blocks of a cluster, or co-resident blocks
  kColumn,  // 32 neighbouring rows per block; the threads of a row are 32 apart
};

struct RowLayout {
  ReductionGroup reduction_group = ReductionGroup::kBlock;
  int threads = 256;          // per block
  int rows = 1;               // per block
  int parts = 256;            // threads of a block that reduce a row together
  int cluster = 1;            // blocks per row that reduce through distributed shared memory
  int resident_blocks = 1;    // blocks per row that reduce through global memory and wait for each other
  int chunks = 1;             // blocks, or clusters, per row that store partial results
  bool fixed_chunks = false;  // as many for every length: another kernel stores them
  double on_chip = 1;         // predicted fraction of a row that is kept and read once
  // Blocks that take rows one after the other (schedule/lowering/cross_row_reduction); 0: a block per row.
  int blocks = 0;
  int blocks_at_once = 0;  // of those, resident blocks per multiprocessor
  int rows_ahead = 0;      // of those: rows that a block copies to shared memory before their turn; 0 to 2
  int kept_words = 0;      // of those: words of operands shared by all rows that a thread keeps in registers
  int blocks_sharing_row() const { return cluster * resident_blocks; }
  friend bool operator==(const RowLayout&, const RowLayout&) = default;
};

inline constexpr int kColumnRows = 32;  // rows per block for kColumn

// The memory order of the operands: loads contiguous along the reduced axis, and loads contiguous along the rows.
struct Direction {
  int along_reduction = 0, along_rows = 0;
  std::uint32_t contiguous_row = 0;  // if along_rows > 0: the contiguous axis of rows
  bool product = false;              // a matrix product: each load lacks an axis of rows that the other has
  bool whole_rows = false;           // all operands have contiguous rows without gaps or overlaps
};

Direction direction_of(const RowForm& form, const Graph& graph);

// Elements of a row per thread in unrolled loops: fewer if each needs more computation.
int most_elements_of_thread(const RowForm& form, const Graph& graph);

// The candidates worth measuring, best predicted first.
std::vector<RowLayout> row_layouts(const RowForm& form, const Direction& direction, const Graph& graph,
                                   const Target& target);

std::string name_of(const RowLayout& layout);

// Number of kernels that run one after the other. Chunks add one for each reduction stage (or for a one-pass pair);
// co-resident blocks add the one that clears counters.
int launches_of(const RowForm& form, const RowLayout& layout);

}  // namespace fusec
