// What the user may ask of emitted code.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analysis/kernel/numerics.h"

namespace fusec {

class TuningDatabase;

struct EmitOptions {
  // Rounds every fused intermediate to its declared dtype and lets nothing contract across nodes: elementwise,
  // broadcast and injective groups then give bit for bit what unfused kernels give.
  bool round_intermediates = false;
  Numerics numerics = {};
  std::shared_ptr<const TuningDatabase> tuning = nullptr;  // what was measured; null: schedules go as they predict
};

// What was asked for beyond the defaults, as the command lines call it: "round-intermediates", "precise-math", ...
std::vector<std::string> requested_numerics(const EmitOptions& options);

}  // namespace fusec
