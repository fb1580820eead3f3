// Blocks that have a tile of a kernel's points each: several elements of some axes, one of the others.
//
//   const int rest = blockIdx.x / 8;  const int first = blockIdx.x % 8 * 112;  const int i0 = rest;
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/expr/index_text.h"
#include "codegen/expr/kernel_writer.h"

namespace fusec {

// An axis of which a block has several elements.
struct TiledAxis {
  std::uint32_t axis;
  int extent;  // of a tile
};

IndexExpr tile_grid(const Kernel& kernel, const std::vector<TiledAxis>& tiled);

// Of a kernel whose blocks have so many threads each.
KernelWriter tile_writer(const Kernel& kernel, const Graph& graph, const std::vector<TiledAxis>& tiled, int threads);
// What was written, with tiles in so many bytes of shared memory. ptxas may think of one block at a time: for more of
// them it would spill a few registers.
struct TileBlocks {
  int threads, shared_bytes;
  const char* schedule;
};
KernelSource finish_tiles(KernelWriter& writer, const Kernel& kernel, const Graph& graph,
                          const std::vector<TiledAxis>& tiled, const TileBlocks& blocks);

// Declares where this block's tile begins along each tiled axis, and gives the names; `bind` gets the variable of every
// other axis, by its number among the outputs' axes.
using BindAxis = std::function<void(std::size_t axis, const std::string& variable)>;
std::map<std::uint32_t, std::string> find_tile(const Kernel& kernel, const std::vector<TiledAxis>& tiled,
                                               KernelWriter& writer, const IndexText& text, const BindAxis& bind);
std::map<std::uint32_t, std::string> find_tile(const Kernel& kernel, const std::vector<TiledAxis>& tiled,
                                               KernelWriter& writer, ExprEmitter& emitter);

}  // namespace fusec
