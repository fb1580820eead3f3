// How many blocks of a kernel fit on a multiprocessor at a time, and which resource limits them.
#pragma once

#include <cstdint>
#include <string_view>

#include "schedule/target/target.h"

namespace fusec {

struct Occupancy {
  enum class Limit : std::uint8_t { kThreads, kBlocks, kRegisters, kShared };
  int blocks = 0;       // per multiprocessor
  double fraction = 0;  // resident warps / maximal warps
  Limit limit = Limit::kThreads;
};

std::string_view name(Occupancy::Limit limit);  // "registers"

// Same rules as CUDA's occupancy calculator: warps get registers in units of 256; blocks get shared memory in units of
// 128 bytes, plus 1024 bytes for the system.
Occupancy occupancy(const Target& target, int threads, int registers, std::int64_t shared_bytes);

}  // namespace fusec
