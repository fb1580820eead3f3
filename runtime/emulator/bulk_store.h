// Bulk copies from shared into global memory between their issue and the wait for their group. The bytes are where they
// belong at once; what counts as unfinished are marks on the source, which nobody may write, and on the target, which
// nobody may access. The end of the kernel ends every copy.
#pragma once

#include "runtime/emulator/access.h"

namespace fusec::emulator {

void add_piece(std::vector<BulkStore::Piece>& pieces, std::uint64_t address, std::uint32_t bytes);
// The lane has issued the copy.
void begin_bulk_store(Warp& warp, int lane, BulkStore store);
// The lanes wait for all their committed groups but the newest `newest`: for the copies' ends, or only (`read`) until
// the sources may be written again.
void end_bulk_stores(Warp& warp, std::uint32_t lanes, std::uint32_t newest, bool read);

// The last lanes of the block exit: its shared memory goes, and no bulk store may still read it.
void check_sources_at_exit(Warp& warp, std::uint32_t lanes);

}  // namespace fusec::emulator
