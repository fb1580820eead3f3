// Analyses the memory layout of interleaved rows: the interleaved axis, the contiguous loads and stores, and their
// vector width. schedule/reduction/strided_reduction_threads assigns the threads.
#pragma once

#include <optional>

#include "schedule/reduction/strided_reduction.h"

namespace fusec {

struct StridedReductionLayout {
  StridedReduction plan;          // without threads
  int widest_bits = 8;            // of any element
  int narrowest_bits = 64;        // of any element
  bool may_be_unaligned = false;  // strips of unaligned lines are possible
};

// For a form with nested axes of rows merged. Nothing if its rows are not interleaved. `in_words`: for strips alone,
// with vectors of up to 16 bytes, as wide as the alignment of all lines.
std::optional<StridedReductionLayout> strided_reduction_layout(const RowForm& form, const Graph& graph,
                                                               bool in_words = false);

inline constexpr int kMaxStripRows = 32;  // interleaved rows, at most, where a line could be strips

}  // namespace fusec
