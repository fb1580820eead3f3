// Specializes attention for symbolic query or key counts. The best kernel for a prompt is poor for decoding: its tiles
// have rows for many queries, and one block per head walks over all keys. So the launch selects one of several kernels:
//
//   t >= 17     many queries: prompt tiles
//   t <= 16     few queries: heads that share keys fill one tile of rows, and several blocks split the keys
//     n <= 512    few keys: one block walks over all of them
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/guard.h"
#include "schedule/form_memory.h"
#include "schedule/target/target.h"

namespace fusec {

// Two versions of one kernel. `special` assumes `condition` and runs only where it holds. `general` is valid everywhere
// and is tuned for launches where the condition fails.
struct AttentionCases {
  Kernel general, special;
  GuardCondition condition;
};

// `special` is for many queries. Few queries may need more launches, because blocks split the keys. Nothing if the
// query count is known, or if few queries imply few keys.
std::optional<AttentionCases> query_count_cases(const Kernel& kernel, const Target& target, FormMemory& forms);
// `special` is for so few keys that blocks do not split them. Nothing if there are never more keys.
std::optional<AttentionCases> key_count_cases(const Kernel& kernel, const Target& target, FormMemory& forms);

}  // namespace fusec
