// Rewrites a softmax over keys and one sink per row (a column that attends to no value):
//
//   max over j <= n of where(j < n, score(i, j), sink(i))     becomes     max(max over j < n of score(i, j), sink(i))
//
// Sums, and sinks in the first column, are rewritten in the same way. Reductions then run over keys only, as
// schedule/attention/attention_form needs.
#pragma once

#include <optional>

#include "analysis/kernel/kernel.h"

namespace fusec {

// Returns nothing unless some reduction runs over one element more than a product does.
std::optional<Kernel> peel_sinks(const Kernel& kernel);

}  // namespace fusec
