// Executes cp.async.bulk and cp.reduce.async.bulk: copies of plain byte ranges and of tensor boxes.
//
// A bulk copy happens when it is issued. Bytes that it writes to shared memory count as written by "an asynchronous
// copy", so a thread that reads them without waiting for the mbarrier is a finding. Its sources in shared memory and
// its targets in global memory stay marked until the lane waits for the copy's group (bulk_store.h).
#pragma once

#include "runtime/emulator/machine.h"

namespace fusec::emulator {

enum class BulkDirection : std::uint16_t { kToShared, kToGlobal, kSharedToShared };

// Positions of the operands in the instruction's list.
enum BulkPlace : std::uint32_t { kTarget, kSource, kSize, kBarrier, kMask, kCoordinates };

void execute_bulk_copy(Warp& warp, const Instruction& in, std::uint32_t lanes);

}  // namespace fusec::emulator
