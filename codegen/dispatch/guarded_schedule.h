// A kernel in the form that holds for all values of the model's symbols, and where conditions on them allow better ones
// (16-byte accesses, asynchronous copies, rows in registers, 32-bit indices; products of few rows), in those forms
// besides, with the guards under which the launch takes them.
//
//   y[b, n] = x[b, n] + bias[n]      n % 4 == 0: vectors of 4         else: element by element
//   y[t, n] = sum_k x[t, k] w[n, k]  t <= 8, t <= 16, t <= 32: few rows        else: tiles
#pragma once

#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/guard.h"
#include "codegen/expr/kernel_source.h"
#include "schedule/target/target.h"

namespace fusec {

struct SpecializedSources {
  Guard guard;
  std::vector<KernelSource> sources;  // each in place of the general one there; of those beyond, nothing is left to do
};

struct GuardedSources {
  std::vector<KernelSource> general;
  std::vector<SpecializedSources> special;  // the first whose guard holds is taken
};

// Products of few rows (schedule/gemm/skinny_gemm_form.h).
bool has_skinny_gemm(const SpecializedSources& special);

GuardedSources schedule_with_guard(const Kernel& kernel, const Graph& graph, const Target& target,
                                   const std::string& wanted);

}  // namespace fusec
