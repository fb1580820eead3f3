// Places buffers in one arena by lifetime. Buffers that are alive at the same step never overlap. Sizes may depend on
// symbols: the placement is chosen at the symbols' hints and stays valid for all values, because each buffer starts
// where the buffers below it end.
//
//   a: steps 0-1, b: 1-2, c: 2-3        a at 0, b after a, c in a's place
#pragma once

#include <cstdint>
#include <vector>

#include "ir/bounds.h"

namespace fusec {

struct ArenaRequest {
  IndexExpr bytes;
  std::uint32_t first = 0;  // first and last step, inclusive, at which the buffer is alive
  std::uint32_t last = 0;
};

struct Arena {
  std::vector<IndexExpr> offsets;  // by request
  IndexExpr bytes = 0;
  IndexExpr live_bytes = 0;  // lower bound of any plan: bytes alive at the busiest step, at the symbols' hints
};

inline constexpr std::int64_t kArenaAlignment = 256;

Arena plan_arena(const std::vector<ArenaRequest>& requests, const Bounds& bounds);

}  // namespace fusec
