// What the user may ask of emitted code.
#pragma once

namespace fusec {

struct EmitOptions {
  // Rounds every fused intermediate to its declared dtype and lets nothing contract across nodes: elementwise,
  // broadcast and injective groups then give bit for bit what unfused kernels give.
  bool round_intermediates = false;
};

}  // namespace fusec
