// Executes one fragment of a warp until it ends, waits or has used its budget of instructions.
#pragma once

#include "runtime/emulator/machine.h"

namespace fusec::emulator {

enum class FragmentOutcome : std::uint8_t { kGone, kBlocked, kSlice, kYield };

struct FragmentResult {
  FragmentOutcome outcome = FragmentOutcome::kGone;
  std::uint64_t used = 0;  // instructions
};

// Runs until the fragment is gone (joined or exited), blocked, or has executed `budget` instructions. A fragment that
// is not gone is put back among the warp's fragments.
FragmentResult run_fragment(Warp& warp, const Fragment& fragment, std::uint64_t budget);

// Executes a .sync instruction after all its lanes have arrived.
void execute_together(Warp& warp, const Instruction& in, std::uint32_t lanes);

}  // namespace fusec::emulator
