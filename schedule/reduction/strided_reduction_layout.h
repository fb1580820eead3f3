// How rows whose elements take turns in memory lie there: which axis says which of them, which loads and stores are of
// elements as they follow one another, by which vectors. Threads for them: schedule/reduction/strided_reduction.
#pragma once

#include <optional>

#include "schedule/reduction/strided_reduction.h"

namespace fusec {

struct StridedReductionLayout {
  StridedReduction plan;          // without threads
  int widest_bits = 8;            // of an element
  int narrowest_bits = 64;        // of one, too
  bool may_be_unaligned = false;  // may strips be of lines that begin anywhere?
};

// Of a form whose rows' axes that lie one within the other are one; nothing where its rows do not lie so.
std::optional<StridedReductionLayout> strided_reduction_layout(const RowForm& form, const Graph& graph);

// The same for strips alone, by pieces of as many elements, up to 16 bytes' worth, as all lines begin at.
std::optional<StridedReductionLayout> strided_reduction_layout_in_words(const RowForm& form, const Graph& graph);

inline constexpr int kFewRows = 32;  // that take turns where a line could be strips

}  // namespace fusec
