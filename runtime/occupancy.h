// How many blocks of a kernel a multiprocessor holds at a time, and what limits them.
#pragma once

#include <cstdint>
#include <string_view>

#include "schedule/target/target.h"

namespace fusec {

struct Occupancy {
  enum class Limit : std::uint8_t { kThreads, kBlocks, kRegisters, kShared };
  int blocks = 0;       // a multiprocessor
  double fraction = 0;  // of the warps that it can hold
  Limit limit = Limit::kThreads;
};

std::string_view name(Occupancy::Limit limit);  // "registers"

// As CUDA's occupancy calculator has it: registers are given to warps in units of 256, shared memory to blocks in units
// of 128 bytes and 1024 for the system.
Occupancy occupancy(const Target& target, int threads, int registers, std::int64_t shared_bytes);

}  // namespace fusec
