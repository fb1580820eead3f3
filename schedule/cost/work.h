// The work of a kernel, with symbols at their hints: executed operations by unit, bytes of global memory, and the
// launch that its plan leads to. schedule/plan/count_work counts it from the kernel's expressions.
//
//   silu:    3 M N operations (a sigmoid is two)                 linear:   2 M N K, on tensor cores if operands allow
//
// It says how often a formula's operations are executed. analysis/kernel/formula_flops counts how many the formula
// has, whatever the form.
#pragma once

namespace fusec {

struct Work {
  // Bytes of tensor elements loaded and stored. Each element counts once, however often the caches serve it.
  double read = 0, written = 0;
  // Bytes of the touched sectors over these bytes; caches serve the repeats.
  double sector_overfetch = 1;
  // Executed operations. A value that a form recomputes counts each time (operands of a product per tile, a row's
  // values per column of a pointwise kernel); functions count as their instructions.
  double tensor = 0;                 // on tensor cores, of 16-bit operands
  double float32 = 0, float64 = 0;   // other arithmetic; integers count as float32
  double special = 0;                // reciprocals, square roots, exponentials, logarithms
  double blocks = 1, threads = 256;  // in the grid, and per block
  double in_flight_bytes = 4096;     // bytes of loads in flight per block
  double launches = 1;               // in sequence; 2 if blocks leave partial results for a second kernel
  double registers = 32;             // live values per thread; may exceed what a thread can have
  double shared = 0;                 // bytes of shared memory per block, if that limits residency
  // For several kernels in one launch: seconds of memory and of compute if they ran one after the other.
  double separate_memory = 0, separate_compute = 0;
};

}  // namespace fusec
