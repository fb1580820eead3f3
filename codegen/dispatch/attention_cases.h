// Attention of which only a launch knows how many queries or keys it has, as kernels that expect one thing or the
// other. A prompt's form is none for decoding: its tiles have rows for many queries, and a block for each head walks
// over all keys by itself.
//
//   t >= 17     many queries: tiles as for a prompt
//   t <= 16     few: heads that share keys fill one tile of rows, blocks share the keys
//     n <= 512    few keys: a block walks over all of them
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/guard.h"
#include "schedule/target/target.h"

namespace fusec {

// The same kernel twice: `special` is for launches where the condition holds and assumes it, `general` holds for all
// and expects the others.
struct AttentionCases {
  Kernel general, special;
  GuardCondition condition;
};

// Many queries are special: few have more launches, where blocks share keys. Nothing where their number is known, and
// where few queries see few keys as well.
std::optional<AttentionCases> query_count_cases(const Kernel& kernel, const Target& target);
// So few keys that blocks do not share them are special, where there may be more.
std::optional<AttentionCases> key_count_cases(const Kernel& kernel, const Target& target);

}  // namespace fusec
