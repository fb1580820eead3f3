// Barriers of a block and of a cluster, member masks of warps, and the order they bring between memory accesses.
#pragma once

#include "runtime/emulator/machine.h"

namespace fusec::emulator {

// The live lanes that must come to a .sync instruction together. Reports executors that are not members.
std::uint32_t member_mask(Warp& warp, const Instruction& in, std::uint32_t lanes);
// True where the lanes wait.
bool arrive_at_barrier(Warp& warp, const Instruction& in, std::uint32_t lanes, std::uint32_t pc);
bool arrive_at_cluster_barrier(Warp& warp, const Instruction& in, std::uint32_t lanes, std::uint32_t pc);
// The last lanes of a block exit. Its shared memory lives as long as the block: it must have waited for those of its
// cluster that use it.
void check_last_exit(Warp& warp, std::uint32_t lanes);
// The last lanes of a block exit: all warps of a group must have executed setmaxnreg.
void check_register_changes(Warp& warp, std::uint32_t lanes);
// Lets go the threads of every barrier that is complete.
void release_barriers(Block& block);
void release_cluster_barrier(Cluster& cluster);
// Fragments of a warp that go on from one place towards one join go on as one.
void merge_fragments(Warp& warp);
// What the members did is ordered before what they do from now on (bar.warp.sync); all live lanes stand for the warp.
void synchronize_warp(Warp& warp, std::uint32_t members);

}  // namespace fusec::emulator
