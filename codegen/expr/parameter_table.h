// A parameter list that is too long for a kernel goes through a table in scratch memory, which small kernels fill
// before it:
//
//   concat(x0, ..., x4999; y, n)   ->   fill_table(x0, ..., x499; table)      table[0] = x0; ...
//                                       ...                                   one for every 500 parameters
//                                       concat(table)                         x0 = table[0]; ...; n = table[5001];
//
// KernelWriter::finish writes the kernel so where it must be; here are the kernels that fill.
#pragma once

#include <vector>

#include "codegen/expr/kernel_source.h"

namespace fusec {

// Bytes that these take as a parameter list.
std::size_t parameter_bytes(const std::vector<KernelParameter>& parameters);

// The kernels to launch for this one, in order: itself alone, or behind those that fill its table. `scratch` is the
// number of the table's memory, unused by the schedule that made the kernel.
std::vector<KernelSource> with_filled_table(KernelSource kernel, std::uint32_t scratch);

}  // namespace fusec
