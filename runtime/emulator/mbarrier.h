// mbarrier objects: arrivals, transaction counts, phases, and the memory order that a wait for a phase establishes.
#pragma once

#include "runtime/emulator/machine.h"

namespace fusec::emulator {

// The object at a shared address of the block or its cluster, and its block `home`. Reports a finding and returns null
// if none was initialized there.
MBarrier* find_mbarrier(Warp& warp, int lane, std::uint64_t address, Block*& home);
// Counts `count` arrivals of the warp in the object's current phase; the last one completes the phase.
void arrive(Warp& warp, Block& home, MBarrier& barrier, std::uint32_t count);
// Counts `bytes` of a finished bulk copy.
void complete_bytes(Block& home, MBarrier& barrier, std::uint64_t bytes);
void expect_bytes(Block& home, MBarrier& barrier, std::uint64_t bytes);

}  // namespace fusec::emulator
