// Waits that nobody can end. A cluster that comes back to a state in which it has been before, with no memory, mbarrier
// or barrier changed since, does the same again for ever: unless what it reads of global memory is changed by another
// block, it never ends, and that is known at once. Where only counters in registers go on, budgets say so.
#pragma once

#include <string>

#include "runtime/emulator/machine.h"

namespace fusec::emulator {

// After a round of all warps, which executed so many instructions: forgets the past where something changed, else
// counts the round, and says whether the cluster is in the state of an earlier one.
bool repeats_itself(Cluster& cluster, std::uint64_t instructions);

// Each warp that is left waits or spins in vain: one finding a place, by what it waits for. Stops the blocks.
void report_deadlock(Cluster& cluster);
// The block, or all that are left of the launch, may never end. Ends the launch.
void report_runaway(Block& block, std::string message);

}  // namespace fusec::emulator
