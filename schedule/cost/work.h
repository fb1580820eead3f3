// Counts the work of a kernel from its expressions, with symbols at their hints: executed operations by unit, bytes of
// global memory, and the launch that its form leads to.
//
//   silu:    3 M N operations (a sigmoid is two)                 linear:   2 M N K, on tensor cores if operands allow
//
// This counts how often a formula's operations are executed. analysis/kernel/formula_flops counts how many the formula
// has, whatever the form.
#pragma once

#include <cstdint>

#include "ir/graph.h"
#include "schedule/kernel_forms.h"
#include "schedule/target/target.h"

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

// Counts the work of a kernel. The target decides the tiles of a product (schedule/gemm/gemm_form.h).
Work work_of(const Graph& graph, const Kernel& kernel, const FormOfKernel& form, const Target& target);

// Counts what an op without a formula, or a copy, reads and writes.
Work work_of_special(const Graph& graph, const Node& node);

}  // namespace fusec
