// Bulk copies from shared to global memory between their issue and the wait for their group. The emulator copies the
// bytes at once. Until the wait, marks on the source forbid writes and marks on the target forbid all accesses. The end
// of the kernel ends every copy.
#pragma once

#include "runtime/emulator/access.h"

namespace fusec::emulator {

void add_piece(std::vector<BulkStore::Piece>& pieces, std::uint64_t address, std::uint32_t bytes);
// Records a copy that the lane has issued.
void begin_bulk_store(Warp& warp, int lane, BulkStore store);
// The lanes wait for all their committed groups except the `newest` newest ones. With `read`, they wait only until the
// sources may be written again.
void end_bulk_stores(Warp& warp, std::uint32_t lanes, std::uint32_t newest, bool read);

// Call when the last lanes of the block exit. Reports bulk stores that still read its shared memory.
void check_sources_at_exit(Warp& warp, std::uint32_t lanes);

}  // namespace fusec::emulator
