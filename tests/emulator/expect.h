// What tests of the emulator's checks expect of a run: that it is clean, or has a certain finding.
#pragma once

#include <string>
#include <vector>

#include "emulator/harness.h"

namespace fusec::emulator::testing {

void clean(const RunResult& result);
// A finding of that kind, which names the kernel and the line, and says `text`.
void finds(FindingKind kind, const RunResult& result, const std::string& text = {});

std::vector<std::uint32_t> counting(std::size_t count);  // 0, 1, 2, ...

}  // namespace fusec::emulator::testing
