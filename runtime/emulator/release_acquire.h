// Release and acquire, as PTX's memory model has them: what a thread did before a fence and a strong write behind it is
// ordered before what another does that has read that write, strongly, and fenced.
//
// Between the threads of a block and its shared memory that order is followed location by location. Warps stand for
// their lanes. Between blocks it is enough that both have fenced and accessed memory strongly: which of them waited for
// which is not followed.
#pragma once

#include "runtime/emulator/access.h"

namespace fusec::emulator {

// A fence or membar; `beyond_block`: its scope is the cluster, the device or the system.
void fence_memory(Warp& warp, bool beyond_block);
// A strong access of the block's own shared memory has been carried out.
void strong_shared_access(Warp& warp, std::uint32_t offset, Access access);
// A strong access of memory that blocks share.
void strong_global_access(Block& block);
// Accesses of `block` and of the blocks with the code `other` may be ordered by what both have done.
bool blocks_synchronize(const Block& block, ByteOwner other);

}  // namespace fusec::emulator
