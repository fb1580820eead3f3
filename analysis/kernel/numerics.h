// Inexact arithmetic that the user allows or forbids. Each kernel carries a copy, so that every schedule can read it.
#pragma once

namespace fusec {

struct Numerics {
  bool precise_math = false;   // CUDA's own functions and IEEE division in place of the fast forms (docs/numerics.md)
  bool allow_tf32 = false;     // float32 GEMMs in one pass of tf32; otherwise float32-accurate
  bool allow_atomics = false;  // float atomics, which sum in a varying order; otherwise results repeat

  bool operator==(const Numerics&) const = default;
};

}  // namespace fusec
