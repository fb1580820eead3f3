// Lanes of a warp that part at a branch and meet again: fragments of the warp, and joins where they wait for each
// other.
#pragma once

#include "runtime/emulator/machine.h"

namespace fusec::emulator {

// Where a join's last missing lane has come or gone, those that wait go on as one fragment.
void complete_join(Warp& warp, std::int32_t index);
// The lanes have exited, or will no longer come: nobody waits for them.
void drop_from_joins(Warp& warp, std::int32_t index, std::uint32_t lanes);
// Lanes that have waited at a join while the others spun a whole slice go on without them. True if there were any.
bool release_joins(Warp& warp);
// Splits lanes that take a branch from those that do not; `fragment` keeps the ones that fall through. They meet again
// at `meet`.
void diverge(Warp& warp, Fragment& fragment, std::uint32_t taken, std::uint32_t target, std::uint32_t meet);

}  // namespace fusec::emulator
