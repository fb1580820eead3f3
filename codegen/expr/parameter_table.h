// Passes a parameter list that exceeds the CUDA limit through a table in scratch memory. Small kernels fill the table
// before the kernel runs:
//
//   concat(x0, ..., x4999; y, n)   ->   fill_table(x0, ..., x499; table)      table[0] = x0; ...
//                                       ...                                   one for every 500 parameters
//                                       concat(table)                         x0 = table[0]; ...; n = table[5001];
//
// KernelWriter::finish rewrites the kernel; this file makes the kernels that fill the table.
#pragma once

#include <vector>

#include "codegen/expr/kernel_source.h"

namespace fusec {

// Size of the parameter list, in bytes.
std::size_t parameter_bytes(const std::vector<KernelParameter>& parameters);

// The kernels to launch, in order: those that fill the table, if there is one, then the kernel itself. `scratch` is an
// index that the schedule has not used; the table's memory gets it.
std::vector<KernelSource> with_filled_table(KernelSource kernel, std::uint32_t scratch);

}  // namespace fusec
