// Divergence of a warp: lanes that part at a branch become fragments and wait for each other at a join, the point where
// the branch's paths meet.
#pragma once

#include "runtime/emulator/machine.h"

namespace fusec::emulator {

// If no lane of a join is missing any more, the waiting lanes continue as one fragment.
void complete_join(Warp& warp, std::int32_t index);
// Removes lanes that have exited, or will not arrive, from a join and its parents.
void drop_from_joins(Warp& warp, std::int32_t index, std::uint32_t lanes);
// Lets lanes that wait at joins continue without the missing ones, for when those spin. Returns whether there were any.
bool release_joins(Warp& warp);
// Splits off the lanes that take a branch to `target`; `fragment` keeps the lanes that fall through. The paths meet at
// `meet`.
void diverge(Warp& warp, Fragment& fragment, std::uint32_t taken, std::uint32_t target, std::uint32_t meet);

}  // namespace fusec::emulator
