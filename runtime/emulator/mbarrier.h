// mbarrier objects: arrivals, transaction counts, phases, and the order that waiting for a phase brings.
#pragma once

#include "runtime/emulator/machine.h"

namespace fusec::emulator {

// The object at a shared address (of the block or its cluster); reports and gives null where none was initialized.
MBarrier* find_mbarrier(Warp& warp, int lane, std::uint64_t address, Block*& home);
// Counts `count` arrivals of the warp in the object's current phase and perhaps completes it.
void arrive(Warp& warp, Block& home, MBarrier& barrier, std::uint32_t count);
// A bulk copy on behalf of `home` has brought `bytes`.
void complete_bytes(Block& home, MBarrier& barrier, std::uint64_t bytes);
void expect_bytes(Block& home, MBarrier& barrier, std::uint64_t bytes);

}  // namespace fusec::emulator
