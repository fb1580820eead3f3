// Detects waits that never end. If a cluster returns to an earlier state and no memory, mbarrier or barrier has changed
// since, it repeats itself until another block changes global memory that it reads. If it reads none, it never ends.
// Loops that only change registers, such as counters, are ended by the instruction budget.
#pragma once

#include <string>

#include "runtime/emulator/machine.h"

namespace fusec::emulator {

// Call after a round of all warps that executed `instructions`. Resets the history if something changed; otherwise
// counts the round and returns whether the cluster is in the state of an earlier round.
bool repeats_itself(Cluster& cluster, std::uint64_t instructions);

// Reports what each remaining warp waits for, one finding per instruction, and stops the blocks.
void report_deadlock(Cluster& cluster);
// Reports that the block, or all remaining blocks of the launch, may never end. Ends the launch.
void report_runaway(Block& block, std::string message);

}  // namespace fusec::emulator
