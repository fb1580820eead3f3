// Pointwise kernels whose loads and stores run along different axes (codegen/transpose/transpose_tiles plans them): a
// block reads a tile of each such load along memory, packs neighbours of the stored axis into words of shared memory,
// and after a barrier every thread computes and stores neighbours from there.
//
//   x_lines = 16 bytes of each of x's lines;  put_lines(tile, x_lines);  __syncthreads();
//   x_t = words of the tile;  y[...] = 16 bytes
#pragma once

#include <optional>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/kernel_source.h"
#include "codegen/transpose/transpose_tiles.h"
#include "ir/graph.h"

namespace fusec {

// How it is best taken in tiles: with its axes as they are, or with the last ones as one where they are short. Nothing
// where no load runs along another axis than the stores.
struct TransposeChoice {
  Kernel kernel;
  TransposeTiles tiles;
};
std::optional<TransposeChoice> choose_transpose(const Kernel& kernel, const Graph& graph);

KernelSource emit_transpose(const TransposeChoice& choice, const Graph& graph);

}  // namespace fusec
