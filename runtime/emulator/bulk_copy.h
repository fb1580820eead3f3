// cp.async.bulk and cp.reduce.async.bulk, executed: plain stretches of bytes and boxes of tensors.
//
// A bulk copy is carried out when it is issued. What it writes to shared memory counts as written by "an asynchronous
// copy", so that a thread that reads it without having waited for its mbarrier is found. What it reads there and what
// it writes to global memory is marked until its lane waits for the copy's group (bulk_store.h).
#pragma once

#include "runtime/emulator/machine.h"

namespace fusec::emulator {

enum class BulkDirection : std::uint16_t { kToShared, kToGlobal, kSharedToShared };

// Where the operands lie in the instruction's list.
enum BulkPlace : std::uint32_t { kTarget, kSource, kSize, kBarrier, kMask, kCoordinates };

void execute_bulk_copy(Warp& warp, const Instruction& in, std::uint32_t lanes);

}  // namespace fusec::emulator
