// Release and acquire of PTX's memory model. A thread's accesses before a fence and a later strong write happen before
// the accesses of a thread that read this write strongly and then executed a fence.
//
// For a block's shared memory the emulator tracks this order per location, with warps standing for their lanes. Between
// blocks it only checks that both have executed a fence and a strong access, not which block waited for which.
#pragma once

#include "runtime/emulator/access.h"

namespace fusec::emulator {

// Executes a fence or membar. `beyond_block`: its scope is the cluster, the device or the system.
void fence_memory(Warp& warp, bool beyond_block);
// Call after a strong access of the block's own shared memory.
void strong_shared_access(Warp& warp, std::uint32_t offset, Access access);
// Call for a strong access of memory that blocks share.
void strong_global_access(Block& block);
// Whether fences and strong accesses may order accesses of `block` and of the blocks with code `other`.
bool blocks_synchronize(const Block& block, ByteOwner other);

}  // namespace fusec::emulator
