// Scores with one column more than there are keys, as a sink to which a row may attend without any value:
//
//   max over j <= n of where(j < n, score(i, j), sink(i))     becomes     max(max over j < n of score(i, j), sink(i))
//
// and sums alike, and where the sink comes first: reductions over keys alone are what attention keeps while keys stream
// by (schedule/attention/attention_form).
#pragma once

#include <optional>

#include "analysis/kernel/kernel.h"

namespace fusec {

// Nothing where no reduction runs over one place more than some product does.
std::optional<Kernel> peel_sinks(const Kernel& kernel);

}  // namespace fusec
