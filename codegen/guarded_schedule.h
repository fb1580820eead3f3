// A kernel in the form that holds for all values of the model's symbols, and where conditions on them allow a better
// one (16-byte accesses, asynchronous copies, rows in registers, 32-bit indices), in that form besides, with the guard
// under which the launch takes it.
//
//   y[b, n] = x[b, n] + bias[n]      n % 4 == 0: vectors of 4         else: element by element
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/kernel.h"
#include "analysis/target.h"
#include "codegen/guard.h"
#include "codegen/kernel_source.h"

namespace fusec {

struct SpecialSources {
  Guard guard;
  std::vector<KernelSource> sources;  // as many as the general ones: each in place of the one there
};

struct GuardedSources {
  std::vector<KernelSource> general;
  std::optional<SpecialSources> special;
};

GuardedSources schedule_with_guard(const Kernel& kernel, const Graph& graph, const Target& target,
                                   const std::string& wanted);

}  // namespace fusec
