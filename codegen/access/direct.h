// The fallback schedule, valid for any kernel. One thread makes one element of each output (two neighbours for 4-bit
// elements), and each reduction is a loop of that thread. Float64 GEMMs use it, and everything that no other schedule
// takes.
#pragma once

#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/expr/kernel_source.h"
#include "schedule/target/target.h"

namespace fusec {

KernelSource direct(const Kernel& kernel, const Graph& graph, const Target& target);

// --- shared by the schedules in which a thread has some elements of the iteration space

inline constexpr int kPointwiseThreads = 256;

// The number of the thread in the launch: `blockIdx.x * 256 + threadIdx.x`.
CExpr flat_thread(const KernelWriter& writer, int threads);

// Emits `const int t = blockIdx.x * 256 + threadIdx.x; if (t >= count) return;` and returns t's name. The bounds check
// is omitted if all blocks are full.
std::string open_flat_threads(KernelWriter& writer, const IndexText& text, const IndexExpr& count,
                              int threads = kPointwiseThreads);

// Declares and binds a variable for each axis, from the flat position `flat` (a C variable) by division.
void bind_flat(ExprEmitter& emitter, const std::vector<std::uint32_t>& axes, const std::string& flat,
               std::string_view names = "ijlmnpqr");

// Stores each result's value as a scalar, at the bound axes.
void store_scalars(ExprEmitter& emitter, const std::vector<std::string>& values);

// The same of some outputs, under a condition ("": always).
void store_scalars(ExprEmitter& emitter, const std::vector<const KernelOutput*>& outputs,
                   const std::vector<std::string>& values, const std::string& condition = "");

}  // namespace fusec
