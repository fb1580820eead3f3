// The candidates of a row kernel, best predicted first. The schedule emits one of them
// (codegen/reduction/row_reduction); the cost model predicts the kernel from them.
//
//   sum over 129 columns of 4097   ->   32 columns per block, 32 blocks per column: two launches
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "schedule/reduction/multi_row_block.h"
#include "schedule/reduction/row_layout.h"
#include "schedule/reduction/strided_reduction.h"
#include "schedule/reduction/transposed_row_reduction.h"

namespace fusec {

using RowCandidate = std::variant<TransposedRowReduction, MultiRowBlock, StridedReduction, RowLayout>;

struct RowCandidates {
  RowForm form;
  Direction direction;
  std::vector<RowCandidate> plans;
};

// Nothing if single threads are faster.
std::optional<RowCandidates> find_row_candidates(const RowForm& form, const Graph& graph, const Target& target);

std::vector<std::string> names_of(const RowCandidates& candidates);

// The launches of the best candidate.
struct RowLaunch {
  int blocks_per_row = 1, chunks = 1;  // blocks of a cluster or co-resident blocks; independent blocks
  int launches = 1;                    // one after the other
  double on_chip = 1;                  // fraction of a row that is read once
  // Bytes of the requested sectors divided by bytes of the elements.
  double sector_overfetch = 1;
  // For transposed row reductions; else 0.
  double blocks = 0, threads = 0, shared_bytes = 0;
};
RowLaunch row_launch(const RowCandidates& candidates, const Graph& graph);

// Elements of a row in the text of the best candidate, after unrolling.
int unrolled_elements(const RowCandidates& candidates, const Graph& graph);

}  // namespace fusec
