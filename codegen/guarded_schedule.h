// A kernel in the form that holds for all values of the model's symbols, and where conditions on them allow better ones
// (16-byte accesses, asynchronous copies, rows in registers, 32-bit indices; products of few rows), in those forms
// besides, with the guards under which the launch takes them.
//
//   y[b, n] = x[b, n] + bias[n]      n % 4 == 0: vectors of 4         else: element by element
//   y[t, n] = sum_k x[t, k] w[n, k]  t <= 8, t <= 16, t <= 32: few rows        else: tiles
#pragma once

#include <string>
#include <vector>

#include "analysis/kernel.h"
#include "analysis/target.h"
#include "codegen/guard.h"
#include "codegen/kernel_source.h"

namespace fusec {

struct SpecialSources {
  Guard guard;
  std::vector<KernelSource> sources;  // each in place of the general one there; of those beyond, nothing is left to do
};

struct GuardedSources {
  std::vector<KernelSource> general;
  std::vector<SpecialSources> special;  // the first whose guard holds is taken
};

// Products of few rows (analysis/few_rows_form.h).
bool has_few_rows(const SpecialSources& special);

GuardedSources schedule_with_guard(const Kernel& kernel, const Graph& graph, const Target& target,
                                   const std::string& wanted);

}  // namespace fusec
