// What an access of a warp costs, counted from the byte addresses of its lanes.
//
//   sectors         device memory and its caches move 32 bytes at a time
//   bank conflicts  shared memory has 32 banks of 4 bytes: lanes that access different words of one bank are served one
//                   after the other, lanes that access the same word are served together
//
//   x[2 * lane], 4 bytes: 8 sectors, and 1 bank conflict where x is in shared memory
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace fusec {

// The address of a lane that makes no access to shared memory.
inline constexpr std::int64_t kIdleLane = std::numeric_limits<std::int64_t>::min();

// Distinct sectors that hold these bytes. An access that may cross the end of a sector passes its first byte in each.
std::int64_t count_sectors(std::span<const std::int64_t> addresses);

// Sectors that a run of contiguous bytes touches, on average over all places in a sector that are multiples of
// `alignment`, a power of two. An empty run counts as one byte.
double mean_sectors_of_run(std::int64_t bytes, int alignment);

// Cycles that the lanes take beyond one for each group that shared memory serves at once: 32 lanes of at most 4 bytes,
// 16 of 8 bytes, 8 of 16 bytes. Addresses are multiples of `bytes`; there may be more lanes than a warp has.
int count_bank_conflicts(std::span<const std::int64_t> addresses, int bytes);

}  // namespace fusec
