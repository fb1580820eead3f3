// The form that takes any kernel: one thread makes one element of each output (two neighbours, where elements are half
// a byte), reductions are loops of that thread. Float64 products end here, and whatever no other schedule takes.
#pragma once

#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/expr/kernel_source.h"
#include "schedule/target/target.h"

namespace fusec {

KernelSource direct(const Kernel& kernel, const Graph& graph, const Target& target);

// --- shared by the schedules that give each thread some elements of the iteration space

inline constexpr int kPointwiseThreads = 256;

// `const int t = blockIdx.x * 256 + threadIdx.x; if (t >= count) return;`: gives t's name. Blocks that are all full ask
// for nothing.
std::string open_flat_threads(KernelWriter& writer, const IndexText& text, const IndexExpr& count,
                              int threads = kPointwiseThreads);

// Declares a variable for each axis, by dividing the flat position `flat` (a C variable) by the extents, and binds it.
void bind_flat(ExprEmitter& emitter, const std::vector<std::uint32_t>& axes, const std::string& flat,
               std::string_view names = "ijlmnpqr");

// Stores the results' values, each by itself, where its bound axes say.
void store_scalars(ExprEmitter& emitter, const std::vector<std::string>& values);

}  // namespace fusec
