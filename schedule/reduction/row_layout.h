// Which threads take a row: a warp, a block, the blocks of a cluster or of a cohort
// (schedule/reduction/blocks_per_row), or blocks that know nothing of one another and leave partial results for a later
// kernel; and where neighbouring rows are what lies side by side in memory, the threads of a block that are 32 apart.
//
// A row whose length only a launch knows has as many threads as its hint asks for. Where its bound needs far more
// threads than that, a block keeps the row in as much shared memory as the length of the launch asks for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "schedule/reduction/row_form.h"
#include "schedule/target/target.h"

namespace fusec {

enum class ReductionGroup : std::uint8_t {
  kWarp,    // a warp, or some neighbouring lanes of one; several rows a block
  kBlock,   // the whole block, or the blocks of a cluster or a cohort
  kColumn,  // 32 neighbouring rows a block, each with some threads far apart
};

struct RowLayout {
  ReductionGroup reduction_group = ReductionGroup::kBlock;
  int threads = 256;        // of a block
  int rows = 1;             // of a block
  int parts = 256;          // threads of a row that reduce it together
  int cluster = 1;          // blocks of a row that do so through one another's shared memory
  int resident_blocks = 1;  // or through global memory, where they wait for one another
  int chunks = 1;           // blocks, or clusters, of a row that leave partial results
  double on_chip = 1;       // the share of a row that is kept and read once, as is predicted
  int blocks = 0;  // that take rows one after the other (schedule/lowering/cross_row_reduction); 0: each has its own
  int blocks_at_once = 0;  // of those, of a multiprocessor
  int blocks_sharing_row() const { return cluster * resident_blocks; }
  friend bool operator==(const RowLayout&, const RowLayout&) = default;
};

inline constexpr int kColumnRows = 32;  // of a block whose team is kColumn

// What the loads of the reductions' bodies say: does memory run along the reduced axis, or along the rows?
struct Direction {
  int along_reduction = 0, along_rows = 0;
  std::uint32_t contiguous_row = 0;  // where along_rows > 0: the row axis
  bool product = false;              // of loads that each lack a row axis of the other: a matrix product
  bool whole_rows = false;           // all that is read of rows lies there row after row, without gaps or overlaps
};

Direction direction_of(const RowForm& form, const Graph& graph);

// Elements of a row that a thread may have in turns that are unrolled: the more there is to compute of each, the fewer.
int most_elements_of_thread(const RowForm& form, const Graph& graph);

// The layouts that may be worth a measurement, the one that is predicted to be best first.
std::vector<RowLayout> row_layouts(const RowForm& form, const Direction& direction, const Graph& graph,
                                   const Target& target);

std::string name_of(const RowLayout& layout);

// Kernels that take such rows, one after the other: chunks leave partial results for every reduction that waits, or
// for one pass's together, and cohorts' counters are cleared.
int launches_of(const RowForm& form, const RowLayout& layout);

}  // namespace fusec
