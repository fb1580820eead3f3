// The user's options for emitted code.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analysis/kernel/numerics.h"

namespace fusec {

class TuningDatabase;

struct EmitOptions {
  // Rounds every fused intermediate to its declared dtype and forbids contraction across nodes. Elementwise, broadcast
  // and injective groups then match unfused kernels bit for bit.
  bool round_intermediates = false;
  Numerics numerics = {};
  std::shared_ptr<const TuningDatabase> tuning = nullptr;  // measured choices; null: schedules follow their predictions
  bool variants = true;  // kernels for some sizes alone; a launch plan without them has the same steps
};

// The options that differ from the defaults, by their command-line names: "round-intermediates", "precise-math", ...
std::vector<std::string> requested_numerics(const EmitOptions& options);

}  // namespace fusec
