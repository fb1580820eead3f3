// The shared-memory layout of a staged copy (schedule/movement/staged_copy): the pitch of each tile axis. Padding of 0
// to 7 units between rows is tried, and the one with the fewest bank conflicts is taken, as a transpose pads its tile
// to [32][33]. There is no XOR swizzle.
#pragma once

#include <array>
#include <vector>

#include "schedule/movement/staged_copy.h"

namespace fusec {

inline constexpr int kMostStagedBytes = 52 * 1024;  // of shared memory: three such blocks have any multiprocessor

// An access of a warp to shared memory: every lane's element along each of the tile's axes, and how many bytes behind
// that it is.
struct LaneAccess {
  std::vector<int> elements;  // of lane after lane, of each axis
  std::array<int, kWarpLanes> byte_offset{};
  std::array<bool, kWarpLanes> active{};
};

// Some of those that read operands for results whose elements have so many bits.
std::vector<LaneAccess> reading_accesses(const StagedCopy& plan, int result_bits);

struct PaddedOperand {
  StagedOperand operand;
  double conflicts = 0;           // for an access
  double issued = 0, passes = 0;  // instructions of a warp and passes of shared memory, for a point
};
PaddedOperand choose_padding(const StagedCopy& plan, StagedOperand operand, const std::vector<LaneAccess>& reads);

// All that the operand takes of shared memory, whatever the symbols are.
int staged_bytes(const StagedOperand& operand, const std::vector<TileAxis>& axes);

}  // namespace fusec
