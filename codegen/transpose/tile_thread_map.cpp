#include "codegen/transpose/tile_thread_map.h"

#include <algorithm>

namespace fusec {

std::int64_t ceil_quotient(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::optional<IndexExpr> step_along(const IndexExpr& position, std::uint32_t axis, const Bounds& bounds) {
  const Variable variable{Variable::Kind::kAxis, axis};
  if (const auto step = coefficient_of(position, variable)) return *step;
  const IndexExpr next = substitute(position, [&](Variable v) -> std::optional<IndexExpr> {
    if (v != variable) return std::nullopt;
    return IndexExpr::axis(axis) + 1;
  });
  const IndexExpr step = simplify(next - position, bounds);
  const bool of_symbols =
      std::ranges::all_of(variables_of(step), [](Variable v) { return v.kind == Variable::Kind::kSymbol; });
  const Range range = range_of(step, bounds);
  if (!of_symbols || (range.min <= 0 && range.max >= 0)) return std::nullopt;
  return step;
}

int elements_of_word(int element_bits) {
  return std::max(1, 32 / element_bits);
}

std::int64_t point_count(const std::vector<TiledAxis>& axes) {
  std::int64_t points = 1;
  for (const TiledAxis& tiled : axes) points *= tiled.extent;
  return points;
}

std::int64_t run_elements(const TileLayout& layout, const std::vector<TiledAxis>& axes) {
  std::int64_t count = 1;
  for (const std::size_t i : layout.run) count += (axes[i].extent - 1) * layout.strides[i];
  return count;
}

std::int64_t line_count(const TileLayout& layout, const std::vector<TiledAxis>& axes) {
  std::int64_t count = 1;
  for (const std::size_t i : layout.lines) count *= axes[i].extent;
  return count;
}

TileThreadMap thread_map_for(std::int64_t lines, int of_line, int threads, int lanes) {
  const auto busy = [&](std::int64_t iterations) {
    return static_cast<double>(lines * of_line) / static_cast<double>(iterations * threads);
  };
  TileThreadMap items{.lines = lines, .of_line = of_line, .threads = threads, .lanes = of_line};
  if (lanes > 0) {
    items.lanes = lanes;
    items.traversal = TileThreadMap::Traversal::kLinesAtOnce;
    items.busy = busy(ceil_quotient(lines, items.lines_at_once()) * items.iterations_of_line());
    return items;
  }
  items.busy = busy(ceil_quotient(lines * of_line, threads));
  const bool at_once = of_line <= threads;
  const double in_lines =
      busy(at_once ? ceil_quotient(lines, threads / of_line) : lines * ceil_quotient(of_line, threads));
  constexpr double kAsBusy = 0.8;
  if (in_lines < kAsBusy * items.busy) return items;
  items.traversal = at_once ? TileThreadMap::Traversal::kLinesAtOnce : TileThreadMap::Traversal::kLineByLine;
  items.busy = in_lines;
  return items;
}

TileItem item_at(const TileThreadMap& items, std::int64_t number) {
  const auto thread = static_cast<int>(number % items.threads);
  const std::int64_t iteration = number / items.threads, of_line = items.iterations_of_line();
  if (thread >= items.lines_at_once() * items.lanes) return {.line = items.lines, .place = 0};
  return {.line = iteration / of_line * items.lines_at_once() + thread / items.lanes,
          .place = static_cast<int>(iteration % of_line) * items.lanes + thread % items.lanes};
}

int line_bytes(const TileLayout& layout, const std::vector<TiledAxis>& axes, int element_bits) {
  const std::int64_t bytes = run_elements(layout, axes) * element_bits / 8;
  return static_cast<int>(ceil_quotient(bytes + layout.from - std::min(layout.from, layout.aligned), layout.from)) *
         layout.from;
}

}  // namespace fusec
