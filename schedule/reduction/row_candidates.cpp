#include "schedule/reduction/row_candidates.h"

#include <algorithm>

#include "schedule/kernel_forms.h"
#include "schedule/reduction/lane_sectors.h"
#include "schedule/reduction/row_values.h"

namespace fusec {
namespace {

// Up to this length single threads are faster, if no column needs the result and rows are not contiguous.
constexpr int kSmallWindow = 48;
constexpr std::size_t kMaxMultiRow = 6;

// True if neighbouring rows read overlapping elements.
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

// True for windows that are short, or read in an order that suits single threads.
bool is_for_single_threads(const RowForm& form, const Direction& direction) {
  if (!form.columns.empty()) return false;
  const ExprPool& pool = form.kernel.pool;
  std::int64_t longest = 0;
  for (const ExprId r : form.reductions)
    longest = std::max(longest, value_at_hint(point_count(pool, pool[r].axes), pool.bounds().symbols));
  // Rows with several reduction stages are kept in the registers of several threads instead.
  const std::vector<int> stages = stages_of(form);
  if (std::ranges::any_of(stages, [](int stage) { return stage > 0; }) && !form.rows.empty() &&
      direction.along_reduction + direction.along_rows > 0)
    return false;
  if (longest <= kSmallWindow) return !direction.whole_rows;
  if (longest > 8 * kSmallWindow) return false;
  return (direction.along_rows == 0 && direction.along_reduction == 0) || are_windows(form);
}

// Keeps the layouts in which the lanes of one warp have a whole segment. kColumn has none.
void keep_whole_segments(std::vector<RowLayout>& layouts) {
  std::vector<RowLayout> whole;
  for (RowLayout layout : layouts) {
    if (layout.reduction_group == ReductionGroup::kColumn) continue;
    layout.chunks = 1;
    if (layout.reduction_group == ReductionGroup::kWarp) {
      layout.parts = 32;
      layout.rows = layout.threads / 32;
    }
    if (std::ranges::find(whole, layout) == whole.end()) whole.push_back(layout);
  }
  layouts = std::move(whole);
}

// The plans count rows by their place in memory, so nested axes of rows are merged first.
void find_multi_row_blocks(RowCandidates& candidates, const Graph& graph, const Target& target) {
  RowForm merged = with_rows_merged(candidates.form, graph);
  candidates.multi_row = multi_row_block(merged, graph, target);
  if (candidates.multi_row.empty()) return;
  if (candidates.multi_row.size() > kMaxMultiRow) candidates.multi_row.resize(kMaxMultiRow);
  candidates.form = std::move(merged);
}

double asked_for_by(const RowLayout& layout, const RowCandidates& candidates, const Graph& graph) {
  const bool side_by_side = layout.reduction_group == ReductionGroup::kColumn;
  return sector_overfetch_of_lanes(candidates.form, graph,
                                   side_by_side ? std::optional(candidates.direction.contiguous_row) : std::nullopt);
}

// True unless other layouts are cheaper than an additional launch. Blocks that share strips, co-resident or not, need
// one. The alternative, lanes that take parts of lines, has overfetch, mostly served by L2.
bool is_worth_launch(const StridedReduction& plan, const Graph& graph, const Target& target) {
  constexpr double kMuch = 1.4, kOfLaunch = 0.25;
  if (plan.elements_per_line == 1 || plan.chunks == 1 || plan.form.columns.empty()) return true;
  const double sector_overfetch = sector_overfetch_of_lanes(plan.form, graph, std::nullopt);
  double bytes = 0;
  for (const ExprId load : plan.loads)
    bytes += static_cast<double>(bytes_at_hint(graph.tensor(plan.form.kernel.pool[load].source), graph.symbols));
  return sector_overfetch >= kMuch && sector_overfetch * bytes >= kOfLaunch * target.launch_seconds * target.bandwidth;
}

}  // namespace

std::optional<RowCandidates> find_row_candidates(const RowForm& form, const Graph& graph, const Target& target) {
  RowCandidates candidates{
      .form = form, .direction = {}, .transposed = {}, .multi_row = {}, .strided = {}, .layouts = {}};
  candidates.direction = direction_of(candidates.form, graph);
  if (candidates.form.columns.empty() && candidates.direction.product) return std::nullopt;
  // Two operands that repeat over different rows look like a matrix product; with columns it is none.
  const bool product = candidates.direction.product && candidates.form.columns.empty();
  if (!product && candidates.form.segments.empty()) find_multi_row_blocks(candidates, graph, target);
  if (!candidates.direction.product && candidates.multi_row.empty() && candidates.form.segments.empty())
    candidates.strided = strided_reduction(candidates.form, graph, target);
  if (candidates.strided && !is_worth_launch(*candidates.strided, graph, target)) candidates.strided.reset();
  if (!candidates.direction.product && candidates.multi_row.empty() && !candidates.strided)
    candidates.transposed = transposed_row_reduction(candidates.form, graph, target);
  if (!is_for_single_threads(candidates.form, candidates.direction))
    candidates.layouts = row_layouts(candidates.form, candidates.direction, graph, target);
  if (!candidates.form.segments.empty()) keep_whole_segments(candidates.layouts);
  if (candidates.transposed.empty() && candidates.multi_row.empty() && !candidates.strided &&
      candidates.layouts.empty())
    return std::nullopt;
  return candidates;
}

std::vector<std::string> names_of(const RowCandidates& candidates) {
  std::vector<std::string> names;
  for (const TransposedRowReduction& plan : candidates.transposed) names.push_back(name_of(plan));
  for (const MultiRowBlock& plan : candidates.multi_row) names.push_back(name_of(plan));
  if (candidates.strided) names.push_back(name_of(*candidates.strided));
  for (const RowLayout& layout : candidates.layouts) names.push_back(name_of(layout));
  return names;
}

RowLaunch row_launch(const RowCandidates& candidates, const Graph& graph) {
  if (!candidates.transposed.empty()) {
    const TransposedRowReduction& plan = candidates.transposed.front();
    return {.sector_overfetch = plan.sector_overfetch,
            .blocks = static_cast<double>(blocks_of(plan)),
            .threads = static_cast<double>(plan.threads),
            .shared_bytes = 4.0 * plan.words};
  }
  if (!candidates.multi_row.empty()) return {};
  RowLaunch launch;
  if (candidates.strided) {
    (candidates.strided->resident_blocks ? launch.blocks_per_row : launch.chunks) = candidates.strided->chunks;
    launch.launches = launches_of(*candidates.strided);
    return launch;
  }
  const RowLayout& layout = candidates.layouts.front();
  launch = {.blocks_per_row = layout.blocks_sharing_row(),
            .chunks = layout.chunks,
            .launches = launches_of(candidates.form, layout),
            .on_chip = layout.on_chip,
            .sector_overfetch = asked_for_by(layout, candidates, graph)};
  return launch;
}

int unrolled_elements(const RowCandidates& candidates, const Graph& graph) {
  if (!candidates.transposed.empty())
    return candidates.transposed.front().iterations() * candidates.transposed.front().width;
  if (!candidates.multi_row.empty()) return candidates.multi_row.front().iterations;
  constexpr int kMaxRegisterElements = 64, kMostOfColumn = 16;
  int width = 4;
  if (candidates.strided) {
    width = candidates.strided->width;
    if (candidates.strided->register_vectors > 0) return width * candidates.strided->register_vectors;
  } else {
    const RowLayout& layout = candidates.layouts.front();
    const ExprPool& pool = candidates.form.kernel.pool;
    std::int64_t longest = range_of(point_count(pool, candidates.form.columns), pool.bounds()).max;
    for (const ExprId r : candidates.form.reductions)
      longest = std::max(longest, range_of(point_count(pool, pool[r].axes), pool.bounds()).max);
    const std::int64_t elements = (longest + layout.parts - 1) / layout.parts;
    if (layout.reduction_group == ReductionGroup::kColumn)
      return static_cast<int>(std::min<std::int64_t>(elements, kMostOfColumn));
    if (layout.chunks == 1 && elements <= kMaxRegisterElements) return static_cast<int>(elements);
  }
  return width * unroll_factor(width * code_of_row(candidates.form, graph));
}

}  // namespace fusec
