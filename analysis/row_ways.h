// In which ways a kernel of rows can be taken, the one that is predicted to be best first: asked by the schedule, which
// emits one of them (codegen/schedules/row_reduction), and by whoever predicts what becomes of the kernel.
//
//   sum over 129 columns of 4097   ->   32 columns a block, 32 blocks a column: two launches
#pragma once

#include <optional>
#include <vector>

#include "analysis/interleaved_rows.h"
#include "analysis/row_layout.h"
#include "analysis/short_rows.h"
#include "analysis/turned_rows.h"

namespace fusec {

struct RowWays {
  RowForm form;
  Direction direction;
  std::vector<TurnedRows> turned;              // better than the layouts
  std::vector<ShortRows> together;             // likewise
  std::optional<InterleavedRows> interleaved;  // likewise
  std::vector<RowLayout> layouts;
};

// Nothing where no reduction depends on output axes alone, and where single threads do better.
std::optional<RowWays> row_ways(const Kernel& kernel, const Graph& graph, const Target& target);

// What the best of them launches.
struct RowLaunch {
  int together = 1, chunks = 1;  // blocks of a row: of a cluster or a cohort, or of neither
  int launches = 1;  // one after the other
  double held = 1;  // the share of a row that is read once
  // Bytes of the sectors that threads ask for, over those of the elements.
  double asked_for = 1;
  // Of rows that are turned; else 0.
  double blocks = 0, threads = 0, shared_bytes = 0;
};
RowLaunch row_launch(const Kernel& kernel, const Graph& graph, const Target& target);
RowLaunch row_launch(const RowWays& ways, const Graph& graph);

// How many elements of a row the text of the best of them has, as its loops are unrolled.
int elements_in_text(const RowWays& ways, const Graph& graph);

}  // namespace fusec
