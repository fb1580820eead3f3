#include "codegen/transpose/tile_grid.h"

#include <fmt/format.h>

#include <algorithm>

namespace fusec {
namespace {

const TiledAxis* tiled_axis(const std::vector<TiledAxis>& tiled, std::uint32_t axis) {
  const auto at = std::ranges::find(tiled, axis, &TiledAxis::axis);
  return at == tiled.end() ? nullptr : &*at;
}

IndexExpr tiles_along(const Kernel& kernel, const std::vector<TiledAxis>& tiled, std::uint32_t axis) {
  const TiledAxis* const with_tiles = tiled_axis(tiled, axis);
  const IndexExpr& extent = kernel.pool.extent(axis);
  return with_tiles == nullptr ? extent : simplify(ceil_div(extent, with_tiles->extent), kernel.pool.bounds());
}

std::string declared(KernelWriter& writer, std::string_view preferred_name, const std::string& value) {
  const std::string name = writer.unique(preferred_name);
  writer.line(fmt::format("const {} {} = {};", writer.index_type(), name, value));
  return name;
}

std::string scaled(const std::string& a, int by) {
  if (by == 1) return a;
  return a.find('%') == std::string::npos ? fmt::format("{} * {}", a, by) : fmt::format("({}) * {}", a, by);
}

}  // namespace

IndexExpr tile_grid(const Kernel& kernel, const std::vector<TiledAxis>& tiled) {
  IndexExpr blocks = 1;
  for (const std::uint32_t axis : kernel.outputs[0].axes) blocks *= tiles_along(kernel, tiled, axis);
  return blocks;
}

KernelWriter tile_writer(const Kernel& kernel, const Graph& graph, const std::vector<TiledAxis>& tiled, int threads) {
  return {graph, needs_wide_index(kernel, graph, tile_grid(kernel, tiled) * threads)};
}

KernelSource finish_tiles(KernelWriter& writer, const Kernel& kernel, const Graph& graph,
                          const std::vector<TiledAxis>& tiled, const TileBlocks& blocks) {
  KernelSource source = writer.finish(kernel_comment(graph, kernel), blocks.threads, 1);
  source.grid[0] = simplify(tile_grid(kernel, tiled), kernel.pool.bounds());
  source.dynamic_shared = blocks.shared_bytes;
  source.schedule = blocks.schedule;
  return source;
}

std::map<std::uint32_t, std::string> find_tile(const Kernel& kernel, const std::vector<TiledAxis>& tiled,
                                               KernelWriter& writer, const IndexText& text, const BindAxis& bind) {
  std::map<std::uint32_t, std::string> origin;
  std::string rest = writer.wide() ? "(long long)blockIdx.x" : "(int)blockIdx.x";
  const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
  for (std::size_t i = axes.size(); i-- > 0;) {
    const TiledAxis* const with_tiles = tiled_axis(tiled, axes[i]);
    const IndexExpr count = tiles_along(kernel, tiled, axes[i]);
    bool last = true;  // nothing is left for those before it
    for (std::size_t k = 0; k < i; ++k) last = last && tiles_along(kernel, tiled, axes[k]).is(1);
    std::string mine = rest;
    if (count.is(1)) {
      mine = "0";
    } else if (!last) {
      const std::string by = text.tight(count);
      const std::string left = writer.unique("rest");
      mine = fmt::format("{} % {}", rest, by);
      writer.line(fmt::format("const {} {} = {} / {};", writer.index_type(), left, rest, by));
      rest = left;
    }
    if (with_tiles == nullptr)
      bind(i, declared(writer, fmt::format("i{}", i), mine));
    else
      origin[axes[i]] = mine == "0" ? mine : declared(writer, "first", scaled(mine, with_tiles->extent));
  }
  return origin;
}

std::map<std::uint32_t, std::string> find_tile(const Kernel& kernel, const std::vector<TiledAxis>& tiled,
                                               KernelWriter& writer, ExprEmitter& emitter) {
  return find_tile(kernel, tiled, writer, emitter.index_text(), [&](std::size_t axis, const std::string& variable) {
    emitter.bind(kernel.outputs[0].axes[axis], variable);
  });
}

}  // namespace fusec
