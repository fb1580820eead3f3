// Pointwise kernels whose loads and stores run along different axes (codegen/schedules/transpose_tiles plans them): a
// block reads a tile of each such load along memory, packs neighbours of the stored axis into words of shared memory,
// and after a barrier every thread computes and stores neighbours from there.
//
//   x_lines = 16 bytes of each of x's lines;  put_lines(tile, x_lines);  __syncthreads();
//   x_t = words of the tile;  y[...] = 16 bytes
#pragma once

#include <optional>

#include "analysis/kernel.h"
#include "codegen/kernel_source.h"
#include "ir/graph.h"

namespace fusec {

// Nothing where no load runs along another axis than the stores.
std::optional<KernelSource> transpose(const Kernel& kernel, const Graph& graph);

}  // namespace fusec
