// Barriers of a block and of a cluster, member masks of warps, and the memory order that they establish.
#pragma once

#include "runtime/emulator/machine.h"

namespace fusec::emulator {

// The live lanes that must execute a .sync instruction together. Reports executing lanes that are not members.
std::uint32_t member_mask(Warp& warp, const Instruction& in, std::uint32_t lanes);
// Both return whether the lanes wait.
bool arrive_at_barrier(Warp& warp, const Instruction& in, std::uint32_t lanes, std::uint32_t pc);
bool arrive_at_cluster_barrier(Warp& warp, const Instruction& in, std::uint32_t lanes, std::uint32_t pc);
// Call when the last lanes of a block exit. Its shared memory ends with the block, so the block must have waited for
// the blocks of its cluster that use it.
void check_last_exit(Warp& warp, std::uint32_t lanes);
// Call when the last lanes of a block exit. Checks that all warps of a warpgroup have executed setmaxnreg.
void check_register_changes(Warp& warp, std::uint32_t lanes);
// Releases the threads of every complete barrier.
void release_barriers(Block& block);
void release_cluster_barrier(Cluster& cluster);
// Merges fragments of a warp with the same pc and the same join.
void merge_fragments(Warp& warp);
// bar.warp.sync: what the members did happens before what they do from now on. If all live lanes are members, this
// holds for the whole warp.
void synchronize_warp(Warp& warp, std::uint32_t members);

}  // namespace fusec::emulator
