// What the user allows, or forbids, of arithmetic that is not exact. Kernels carry it, so that every schedule can ask.
#pragma once

namespace fusec {

struct Numerics {
  bool precise_math = false;   // CUDA's own functions and IEEE division in place of the fast forms (docs/numerics.md)
  bool allow_tf32 = false;     // float32 products in one pass of tf32; without it they are float32-accurate
  bool allow_atomics = false;  // float atomics, whose sums depend on who comes first; without it results repeat

  bool operator==(const Numerics&) const = default;
};

}  // namespace fusec
