// In which ways a kernel of rows can be taken, the one that is predicted to be best first: asked by the schedule, which
// emits one of them (codegen/reduction/row_reduction), and by whoever predicts what becomes of the kernel.
//
//   sum over 129 columns of 4097   ->   32 columns a block, 32 blocks a column: two launches
#pragma once

#include <optional>
#include <vector>

#include "schedule/reduction/multi_row_block.h"
#include "schedule/reduction/row_layout.h"
#include "schedule/reduction/strided_reduction.h"
#include "schedule/reduction/transposed_row_reduction.h"

namespace fusec {

struct RowCandidates {
  RowForm form;
  Direction direction;
  std::vector<TransposedRowReduction> transposed;  // better than the layouts
  std::vector<MultiRowBlock> multi_row;            // likewise
  std::optional<StridedReduction> strided;         // likewise
  std::vector<RowLayout> layouts;
};

// Nothing where no reduction depends on output axes alone, and where single threads do better.
std::optional<RowCandidates> row_candidates(const Kernel& kernel, const Graph& graph, const Target& target);

// What the best of them launches.
struct RowLaunch {
  int blocks_per_row = 1, chunks = 1;  // blocks of a row: of a cluster or a cohort, or of neither
  int launches = 1;                    // one after the other
  double on_chip = 1;                  // the share of a row that is read once
  // Bytes of the sectors that threads ask for, over those of the elements.
  double sector_overfetch = 1;
  // Of rows that are turned; else 0.
  double blocks = 0, threads = 0, shared_bytes = 0;
};
RowLaunch row_launch(const Kernel& kernel, const Graph& graph, const Target& target);
RowLaunch row_launch(const RowCandidates& candidates, const Graph& graph);

// How many elements of a row the text of the best of them has, as its loops are unrolled.
int unrolled_elements(const RowCandidates& candidates, const Graph& graph);

}  // namespace fusec
