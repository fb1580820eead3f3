#include "analysis/row_ways.h"

#include <algorithm>

#include "analysis/kernel_forms.h"
#include "analysis/lane_sectors.h"
#include "analysis/row_values.h"
#include "analysis/vector_product.h"

namespace fusec {
namespace {

// Up to this length single threads do better, where no column needs the result and rows do not follow one another.
constexpr int kSmallWindow = 48;
constexpr std::size_t kMostTogether = 6;

// Do neighbouring rows read the same elements, each somewhat further on?
bool are_windows(const RowForm& form) {
  const ExprPool& pool = form.kernel.pool;
  for (const ExprId id : reachable(pool, form.reductions)) {
    if (pool[id].op != ExprOp::kLoad) continue;
    for (const IndexExpr& e : pool[id].indices)
      for (const ExprId r : form.reductions)
        for (const std::uint32_t tap : pool[r].axes)
          for (const std::uint32_t row : form.rows) {
            const auto step = coefficient_of(e, {Variable::Kind::kAxis, row});
            const auto dilation = coefficient_of(e, {Variable::Kind::kAxis, tap});
            const auto taps = pool.extent(tap).as_constant();
            if (step && dilation && taps && *step > 0 && *step <= *dilation * (*taps - 1)) return true;
          }
  }
  return false;
}

// Windows so short, or read in such an order, that single threads do better.
bool is_for_single_threads(const RowForm& form, const Direction& direction) {
  if (!form.columns.empty()) return false;
  const ExprPool& pool = form.kernel.pool;
  std::int64_t longest = 0;
  for (const ExprId r : form.reductions)
    longest = std::max(longest, value_at_hint(point_count(pool, pool[r].axes), pool.bounds().symbols));
  // Rows that are reduced several times over are kept in registers by threads that have them between them.
  const std::vector<int> stages = stages_of(form);
  if (std::ranges::any_of(stages, [](int stage) { return stage > 0; }) && !form.rows.empty() &&
      direction.along_reduction + direction.along_rows > 0)
    return false;
  if (longest <= kSmallWindow) return !direction.whole_rows;
  if (longest > 8 * kSmallWindow) return false;
  return (direction.along_rows == 0 && direction.along_reduction == 0) || are_windows(form);
}

// Lanes of one warp have a segment, of one of a row's blocks; rows side by side have none.
void keep_segments_whole(std::vector<RowLayout>& layouts) {
  std::vector<RowLayout> whole;
  for (RowLayout layout : layouts) {
    if (layout.team == RowTeam::kColumn) continue;
    layout.chunks = 1;
    if (layout.team == RowTeam::kWarp) {
      layout.parts = 32;
      layout.rows = layout.threads / 32;
    }
    if (std::ranges::find(whole, layout) == whole.end()) whole.push_back(layout);
  }
  layouts = std::move(whole);
}

// Their numbers are places in memory: rows' axes that lie one within the other are not taken apart.
void find_short_rows(RowWays& ways, const Graph& graph, const Target& target) {
  RowForm merged = with_rows_merged(ways.form, graph);
  ways.together = short_rows(merged, graph, target);
  if (ways.together.empty()) return;
  if (ways.together.size() > kMostTogether) ways.together.resize(kMostTogether);
  ways.form = std::move(merged);
}

double asked_for_by(const RowLayout& layout, const RowWays& ways, const Graph& graph) {
  const bool side_by_side = layout.team == RowTeam::kColumn;
  return asked_for_by_lanes(ways.form, graph,
                            side_by_side ? std::optional(ways.direction.contiguous_row) : std::nullopt);
}

// Lanes that take pieces of lines as they lie ask for some of their neighbours, in the end from L2, but by narrow
// accesses. Blocks that wait for one another, or share strips, are a launch more.
bool is_worth_launch(const InterleavedRows& way, const Graph& graph, const Target& target) {
  constexpr double kMuch = 1.4, kOfLaunch = 0.25;
  if (way.breadth == 1 || way.chunks == 1 || way.form.columns.empty()) return true;
  const double asked_for = asked_for_by_lanes(way.form, graph, std::nullopt);
  double bytes = 0;
  for (const ExprId load : way.loads)
    bytes += static_cast<double>(bytes_at_hint(graph.tensor(way.form.kernel.pool[load].source), graph.symbols));
  return asked_for >= kMuch && asked_for * bytes >= kOfLaunch * target.launch_seconds * target.bandwidth;
}

}  // namespace

std::optional<RowWays> row_ways(const Kernel& kernel, const Graph& graph, const Target& target) {
  std::optional<RowForm> form = row_form(kernel, graph);
  if (!form) return std::nullopt;
  RowWays ways{
      .form = *std::move(form), .direction = {}, .turned = {}, .together = {}, .interleaved = {}, .layouts = {}};
  ways.direction = direction_of(ways.form, graph);
  if (ways.form.columns.empty() && ways.direction.product) return std::nullopt;
  // Two operands that repeat over different rows look like a product's; one that keeps its columns is none.
  const bool product = ways.direction.product && ways.form.columns.empty();
  if (!product && ways.form.segments.empty()) find_short_rows(ways, graph, target);
  if (!ways.direction.product && ways.together.empty() && ways.form.segments.empty())
    ways.interleaved = interleaved_rows(ways.form, graph, target);
  if (ways.interleaved && !is_worth_launch(*ways.interleaved, graph, target)) ways.interleaved.reset();
  if (!ways.direction.product && ways.together.empty() && !ways.interleaved)
    ways.turned = turned_rows(ways.form, graph, target);
  if (!is_for_single_threads(ways.form, ways.direction))
    ways.layouts = row_layouts(ways.form, ways.direction, graph, target);
  if (!ways.form.segments.empty()) keep_segments_whole(ways.layouts);
  if (ways.turned.empty() && ways.together.empty() && !ways.interleaved && ways.layouts.empty()) return std::nullopt;
  return ways;
}

RowLaunch row_launch(const Kernel& kernel, const Graph& graph, const Target& target) {
  if (find_vector_product(kernel, graph, target)) return {};
  const std::optional<RowWays> ways = row_ways(kernel, graph, target);
  return ways ? row_launch(*ways, graph) : RowLaunch{};
}

RowLaunch row_launch(const RowWays& ways, const Graph& graph) {
  if (!ways.turned.empty()) {
    const TurnedRows& way = ways.turned.front();
    return {.asked_for = way.asked_for,
            .blocks = static_cast<double>(blocks_of(way)),
            .threads = static_cast<double>(way.threads),
            .shared_bytes = 4.0 * way.words};
  }
  if (!ways.together.empty()) return {};
  RowLaunch launch;
  if (ways.interleaved) {
    (ways.interleaved->cohort ? launch.together : launch.chunks) = ways.interleaved->chunks;
    launch.launches = launches_of(*ways.interleaved);
    return launch;
  }
  const RowLayout& layout = ways.layouts.front();
  launch = {.together = layout.blocks_together(),
            .chunks = layout.chunks,
            .launches = launches_of(ways.form, layout),
            .held = layout.held,
            .asked_for = asked_for_by(layout, ways, graph)};
  return launch;
}

int elements_in_text(const RowWays& ways, const Graph& graph) {
  if (!ways.turned.empty()) return ways.turned.front().turns() * ways.turned.front().width;
  if (!ways.together.empty()) return ways.together.front().turns;
  constexpr int kMostKept = 64, kMostOfColumn = 16;
  int width = 4;
  if (ways.interleaved) {
    width = ways.interleaved->width;
    if (ways.interleaved->kept_turns > 0) return width * ways.interleaved->kept_turns;
  } else {
    const RowLayout& layout = ways.layouts.front();
    const ExprPool& pool = ways.form.kernel.pool;
    std::int64_t longest = range_of(point_count(pool, ways.form.columns), pool.bounds()).max;
    for (const ExprId r : ways.form.reductions)
      longest = std::max(longest, range_of(point_count(pool, pool[r].axes), pool.bounds()).max);
    const std::int64_t elements = (longest + layout.parts - 1) / layout.parts;
    if (layout.team == RowTeam::kColumn) return static_cast<int>(std::min<std::int64_t>(elements, kMostOfColumn));
    if (layout.chunks == 1 && elements <= kMostKept) return static_cast<int>(elements);
  }
  return width * turns_unrolled(width * code_of_row(ways.form, graph));
}

}  // namespace fusec
