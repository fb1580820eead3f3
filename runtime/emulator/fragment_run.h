// One fragment of a warp executes: instruction after instruction, until it ends, waits or has had its slice.
#pragma once

#include "runtime/emulator/machine.h"

namespace fusec::emulator {

enum class FragmentOutcome : std::uint8_t { kGone, kBlocked, kSlice, kYield };

struct FragmentResult {
  FragmentOutcome outcome = FragmentOutcome::kGone;
  std::uint64_t used = 0;  // instructions
};

// Runs until the fragment is gone (joined or exited), blocked, or has executed `budget` instructions; then it is put
// back among the warp's fragments.
FragmentResult run_fragment(Warp& warp, const Fragment& fragment, std::uint64_t budget);

// A .sync instruction, for which all its lanes have come.
void execute_together(Warp& warp, const Instruction& in, std::uint32_t lanes);

}  // namespace fusec::emulator
