// Places buffers in one arena by lifetime: two that are alive at the same time never overlap. Sizes may depend on
// symbols: then the places are the best found at the symbols' hints, and hold for every other value, each buffer
// beginning where those below it end.
//
//   a: steps 0-1, b: 1-2, c: 2-3        a at 0, b behind a, c where a was
#pragma once

#include <cstdint>
#include <vector>

#include "ir/bounds.h"

namespace fusec {

struct ArenaRequest {
  IndexExpr bytes;
  std::uint32_t first = 0;  // the steps, both included, during which the buffer is alive
  std::uint32_t last = 0;
};

struct Arena {
  std::vector<IndexExpr> offsets;  // by request
  IndexExpr bytes = 0;
  IndexExpr live_bytes = 0;  // what is alive at the busiest step (at the symbols' hints): no plan needs less
};

inline constexpr std::int64_t kArenaAlignment = 256;

Arena plan_arena(const std::vector<ArenaRequest>& requests, const Bounds& bounds);

}  // namespace fusec
