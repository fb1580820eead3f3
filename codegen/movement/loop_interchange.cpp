#include "codegen/movement/loop_interchange.h"

#include <algorithm>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/movement/access_samples.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

constexpr std::int64_t kSector = 32;

// The axis along which lines of the load follow one another, and how many of them are a sector.
struct Interchange {
  std::size_t axis;
  std::int64_t lines;
};

std::optional<Interchange> interchange_of(const Kernel& kernel, const Graph& graph, ExprId load, std::int64_t extent) {
  const ExprPool& pool = kernel.pool;
  const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
  const std::int64_t bytes = extent * bits(pool[load].dtype) / 8;
  const IndexExpr position = position_of(graph, pool, load);
  if (bytes == 0 || bytes >= kSector || kSector % bytes != 0) return std::nullopt;
  if (coefficient_of(position, {Variable::Kind::kAxis, axes.back()}) != 1) return std::nullopt;
  for (std::size_t i = 0; i + 2 < axes.size(); ++i)
    if (coefficient_of(position, {Variable::Kind::kAxis, axes[i]}) == extent &&
        proves_multiple_of(pool.extent(axes[i]), kSector / bytes, pool.bounds()))
      return Interchange{.axis = i, .lines = kSector / bytes};
  return std::nullopt;
}

// Do results of so many lines that follow one another, as many as a warp has of each of those it pairs, fill sectors,
// or all but the first and last one of many?
bool fills_sectors(const Kernel& kernel, std::int64_t extent, std::int64_t lines) {
  constexpr std::int64_t kMany = 8;
  const ExprPool& pool = kernel.pool;
  const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
  const std::uint32_t next = axes[axes.size() - 2];
  return std::ranges::all_of(kernel.outputs, [&](const KernelOutput& output) {
    const IndexExpr at = position_of(pool, output);
    const std::int64_t bytes = extent * bits(output.type.dtype) / 8;
    if (bytes == 0 || coefficient_of(at, {Variable::Kind::kAxis, axes.back()}) != 1) return false;
    if (bytes % kSector == 0) return true;
    if (kSector % bytes != 0 || coefficient_of(at, {Variable::Kind::kAxis, next}) != extent) return false;
    if (proves_multiple_of(pool.extent(next), kSector / bytes, pool.bounds())) return lines * bytes >= kSector;
    return std::min(lines, range_of(pool.extent(next), pool.bounds()).min) * bytes >= kMany * kSector;
  });
}

// So many neighbours of an axis go ahead of the last one.
Kernel interchanged(const Kernel& kernel, const Interchange& interchange) {
  return change_axes(kernel, [&](ExprPool& pool) {
    AxisChange change;
    const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
    std::uint32_t among = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const IndexExpr& extent = kernel.pool.extent(axes[i]);
      if (i + 1 == axes.size()) change.new_axes.push_back(among);
      if (i == interchange.axis) {
        const std::uint32_t pair = pool.new_axis(simplify(floor_div(extent, interchange.lines), pool.bounds()));
        among = pool.new_axis(interchange.lines);
        change.new_axes.push_back(pair);
        change.values.push_back(IndexExpr::axis(pair) * interchange.lines + IndexExpr::axis(among));
        continue;
      }
      change.new_axes.push_back(pool.new_axis(extent));
      change.values.push_back(IndexExpr::axis(change.new_axes.back()));
    }
    return change;
  });
}

}  // namespace

std::optional<Kernel> interchange_short_lines(const Kernel& kernel, const Graph& graph, int width) {
  const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
  if (axes.size() < 3) return std::nullopt;
  const auto extent = kernel.pool.extent(axes.back()).as_constant();
  if (!extent || *extent % width != 0) return std::nullopt;
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel))) {
    if (kernel.pool[id].op != ExprOp::kLoad) continue;
    const auto interchange = interchange_of(kernel, graph, id, *extent);
    if (!interchange) continue;
    const std::int64_t lines = kWarpLanes / std::max<std::int64_t>(1, interchange->lines * (*extent / width));
    if (fills_sectors(kernel, *extent, lines)) return interchanged(kernel, *interchange);
  }
  return std::nullopt;
}

}  // namespace fusec
