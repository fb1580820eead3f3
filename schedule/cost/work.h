// What a kernel has to do, counted from its expressions with symbols at their hints: floating-point operations, bytes
// of global memory, and what the form that it has makes of them on each unit of a multiprocessor.
//
//   silu:    3 M N operations (a sigmoid is two)                 linear:   2 M N K, on tensor cores where factors allow
//
// How often a formula's operations are executed; how many it asks for, whatever the form, is
// analysis/kernel/formula_flops.
#pragma once

#include <cstdint>

#include "ir/graph.h"
#include "schedule/kernel_forms.h"
#include "schedule/target/target.h"

namespace fusec {

struct Work {
  // Elements of tensors that are loaded or stored, each once, whatever caches have to do for it.
  double read = 0, written = 0;
  double sector_overfetch =
      1;  // bytes of the sectors that threads ask for, over those: caches have what is asked for again
  // What is executed: values that a form computes anew (operands of a product for every tile, rows' values for each
  // column of a pointwise kernel) count as often as that happens, functions as the instructions they are made of.
  double tensor = 0;                 // on tensor cores, of 16-bit factors
  double float32 = 0, float64 = 0;   // arithmetic elsewhere; integers are with float32
  double special = 0;                // reciprocals, square roots, exponentials, logarithms
  double blocks = 1, threads = 256;  // of the grid, of a block
  double on_the_way = 4096;          // bytes that a block has asked of memory at a time
  double launches = 1;               // one after the other, where blocks leave partial results for the next kernel
  double registers = 32;             // of a thread: what is alive at once; may be more than a thread can have
  double shared = 0;                 // bytes of shared memory of a block, where they limit how many are there at a time
  // Of several kernels in one launch: seconds of memory and of computing, were they one after the other.
  double memory_apart = 0, compute_apart = 0;
};

// The target chooses the tiles of a product (schedule/gemm/gemm_form.h).
Work work_of(const Graph& graph, const Kernel& kernel, const FormOfKernel& form, const Target& target);

// Of an op without a formula, or a copy: what it reads and writes.
Work work_of_special(const Graph& graph, const Node& node);

}  // namespace fusec
