// Schedules a kernel in a general form, valid for all values of the model's symbols, and in specialized forms that need
// guards: 16-byte accesses, asynchronous copies, rows in registers, 32-bit indices, skinny GEMMs. The launch takes the
// first form with a guard that holds.
//
//   y[b, n] = x[b, n] + bias[n]      n % 4 == 0: vectors of 4              else: element by element
//   y[t, n] = sum_k x[t, k] w[n, k]  t <= 32: skinny GEMM                  else: GEMM tiles
#pragma once

#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/guard.h"
#include "codegen/expr/kernel_source.h"
#include "schedule/form_memory.h"
#include "schedule/target/target.h"

namespace fusec {

struct SpecializedSources {
  Guard guard;
  // Each replaces the general source at its index; general sources beyond the last are not launched.
  std::vector<KernelSource> sources;
};

struct GuardedSources {
  std::vector<KernelSource> general;
  std::vector<SpecializedSources> special;  // the first with a guard that holds is launched
};

// True for a skinny GEMM form (schedule/gemm/skinny_gemm_form.h).
bool has_skinny_gemm(const SpecializedSources& special);

GuardedSources schedule_with_guard(const Kernel& kernel, const Graph& graph, const Target& target,
                                   const std::string& wanted, FormMemory& forms);

}  // namespace fusec
